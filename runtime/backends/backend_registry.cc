#include "runtime/backends/backend_registry.hpp"

#include <dlfcn.h>
#include <numeric>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/error.hpp"
#include "base/json_text.hpp"
#include "base/log.hpp"
#include "base/version.hpp"
#include "runtime/backends/local_backend.hpp"
#include "runtime/collectives/hierarchical/hierarchical_backend.hpp"
#include "runtime/collectives/shm/memory/segment.hpp"
#include "runtime/collectives/shm/shm_backend.hpp"
#include "runtime/collectives/tcp/tcp_transport.hpp"

namespace runjob::runtime {
namespace {

/// PyTorch and others export gloo:: symbols of another Gloo. With DEEPBIND a module finds its own library first. The
/// sanitizers refuse DEEPBIND, because it would also bypass their malloc.
#if defined(RUNJOB_SANITIZED)
constexpr int kOpenFlags = RTLD_NOW | RTLD_LOCAL;
#else
constexpr int kOpenFlags = RTLD_NOW | RTLD_LOCAL | RTLD_DEEPBIND;
#endif

struct Known {
  const char* name;
  const char* kind;
  const char* why_absent;  ///< null when there is a module for it
};

/// The backends of the host. describe_gpus() has those of GPUs.
constexpr Known kKnown[] = {
    {"gloo", "cpu", nullptr},
    {"mpi", "cpu", "this version of runjob has no MPI backend"},
    {"ddl", "gpu", "runjob has no DDL backend: IBM's DDL is not public"},
    {"ccl", "cpu", "this version of runjob has no oneCCL backend"},
};

std::string library_of_this() {
  Dl_info self{};
  ::dladdr(reinterpret_cast<void*>(&library_of_this), &self);
  return self.dli_fname == nullptr ? "" : self.dli_fname;
}

std::string module_path(const std::string& name) {
  const std::string library = library_of_this();
  const std::size_t slash = library.rfind('/');
  const std::string folder = slash == library.npos ? "." : library.substr(0, slash);
  return fmt::format("{}/runjob/librunjob_{}.so", folder, name);
}

/// The module's table. A module stays open, because its threads' code must stay mapped.
/// Errors  Error(kUnavailable).
template <class Plugin>
const Plugin& open_module(const std::string& name, const char* symbol, int flags) {
  const std::string path = module_path(name);
  void* module = ::dlopen(path.c_str(), flags);
  if (module == nullptr) throw Error(Errc::kUnavailable, ::dlerror());
  const auto* plugin = static_cast<const Plugin*>(::dlsym(module, symbol));
  if (plugin == nullptr) throw Error(Errc::kUnavailable, fmt::format("{}: not a backend of runjob", path));
  if (std::string_view(plugin->build) != kVersion) {
    throw Error(Errc::kUnavailable,
                fmt::format("{}: is of runjob {}, but librunjob is {}", path, plugin->build, kVersion));
  }
  return *plugin;
}

const BackendPlugin& open_backend(const char* name) {
  return open_module<BackendPlugin>(name, kPluginSymbol, kOpenFlags);
}

const BackendPlugin& open_gloo() {
  return open_backend("gloo");
}

const DevicePlugin& open_gpu() {
  return open_module<DevicePlugin>("gpu", kDevicePluginSymbol, RTLD_NOW | RTLD_LOCAL);
}

nlohmann::ordered_json describe(const Known& known) {
  nlohmann::ordered_json entry = {{"name", known.name}, {"kind", known.kind}, {"available", false},
                                  {"version", ""},      {"path", ""},         {"reason", ""}};
  try {
    if (known.why_absent != nullptr) throw Error(Errc::kUnavailable, known.why_absent);
    const BackendPlugin& plugin = open_backend(known.name);
    entry["version"] = plugin.library_version();
    entry["path"] = plugin.library_path();
    entry["available"] = true;
  } catch (const Error& error) {
    entry["reason"] = error.what();
  }
  return entry;
}

nlohmann::ordered_json describe_shared_memory() {
  nlohmann::ordered_json entry = {
      {"name", "shm"}, {"kind", "cpu"}, {"available", false}, {"version", kVersion}, {"path", library_of_this()},
      {"reason", ""}};
  try {
    Segment::create(Layout(2).bytes());
    entry["available"] = true;
  } catch (const Error& error) {
    entry["reason"] = error.what();
  }
  return entry;
}

/// In the list, among those of Horovod's order.
constexpr std::ptrdiff_t kPlaceOfNccl = 3;

/// NCCL is available where both it and the driver of the GPUs are. "cuda" is the driver with its GPUs.
void describe_gpus(nlohmann::ordered_json& list) {
  nlohmann::ordered_json nccl = {{"name", "nccl"}, {"kind", "gpu"}, {"available", false},
                                 {"version", ""},  {"path", ""},    {"reason", ""}};
  nlohmann::ordered_json cuda = nccl;
  cuda["name"] = "cuda";
  try {
    const nlohmann::json found = parse_json(open_gpu().description());
    for (auto& [key, value] : found.at("nccl").items()) nccl[key] = value;
    for (auto& [key, value] : found.at("cuda").items()) cuda[key] = value;
    if (nccl.at("available") && !cuda.at("available")) {
      nccl["reason"] = fmt::format("NCCL {} ({}) has no GPU: {}", nccl.at("version").get<std::string>(),
                                   nccl.at("path").get<std::string>(), cuda.at("reason").get<std::string>());
      nccl["available"] = false;
      nccl["version"] = nccl["path"] = "";
      nccl["version_code"] = 0;
    }
  } catch (const std::exception& error) {
    nccl["reason"] = cuda["reason"] = error.what();
  }
  list.insert(list.begin() + kPlaceOfNccl, std::move(nccl));
  list.push_back(std::move(cuda));
}

Error no_backend(const MeshOptions& options, const Error& why) {
  return Error(Errc::kUnavailable, fmt::format("no backend for {} ranks: {}", options.size, why.what()));
}

std::unique_ptr<Transport> make_tcp_transport(const TransportOptions& options) {
  return std::make_unique<TcpTransport>(options);
}

/// Collectives among all ranks alike: each rank is a group of its own.
std::unique_ptr<DataBackend> make_flat_mesh(const MeshOptions& options) {
  MeshOptions alone = options;
  alone.groups.resize(options.hosts.size());
  std::iota(alone.groups.begin(), alone.groups.end(), 0);
  HierarchicalOptions without_rounds;
  without_rounds.rounds = false;
  return std::make_unique<HierarchicalBackend>(alone, /*socket_directory=*/"", HostParts{make_tcp_transport, {}},
                                               without_rounds);
}

/// Gloo's collectives among all ranks.
std::unique_ptr<DataBackend> make_gloo(const MeshOptions& options) {
  std::unique_ptr<DataBackend> backend;
  open_gloo().create(options, make_tcp_transport(all_pairs(options)), backend).throw_if_failed();
  return backend;
}

}  // namespace

std::unique_ptr<Backend> make_local_backend() {
  return std::make_unique<LocalBackend>();
}

std::unique_ptr<Backend> make_shared_memory_backend(const MeshOptions& options, const BackendSettings& settings,
                                                    const std::string& socket_directory) {
  return std::make_unique<ShmBackend>(options, socket_directory,
                                      ShmOptions{settings.cma, settings.symmetric_memory, settings.job_buffers});
}

std::unique_ptr<Backend> make_hierarchical_backend(const MeshOptions& options, const BackendSettings& settings,
                                                   const std::string& socket_directory) {
  try {
    HierarchicalOptions hierarchical{settings.hierarchical_allreduce, settings.hierarchical_allgather};
    if (settings.gloo) hierarchical = {.allreduce = false, .allgather = false, .flat_name = "Gloo"};
    return std::make_unique<HierarchicalBackend>(
        options, socket_directory, HostParts{make_tcp_transport, settings.gloo ? make_gloo : make_flat_mesh},
        hierarchical);
  } catch (const Error& error) {
    throw no_backend(options, error);
  }
}

BackendSet::MakeDevice gpu_maker(const MeshOptions& options, const DeviceTerms& terms) {
  return [options, terms](DataBackend& host, BackendSet::OnFailure on_failure) {
    const auto write = [](bool is_warning, const std::string& line) {
      is_warning ? log::warn("{}", line) : log::info("{}", line);
    };
    std::unique_ptr<DeviceBackend> backend;
    open_gpu().create({options, terms, &host, std::move(on_failure), write}, backend).throw_if_failed();
    return backend;
  };
}

std::string gpu_leftover() {
  const bool is_open = ::dlopen(module_path("gpu").c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NOLOAD) != nullptr;
  return is_open ? open_gpu().leftover() : "";
}

std::string backends_json() {
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  list.push_back(describe_shared_memory());
  for (const Known& known : kKnown) list.push_back(describe(known));
  describe_gpus(list);
  return ordered_json_text({{"backends", std::move(list)}});
}

}  // namespace runjob::runtime
