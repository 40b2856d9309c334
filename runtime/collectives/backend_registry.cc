#include "runtime/collectives/backend_registry.hpp"

#include <algorithm>
#include <dlfcn.h>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/error.hpp"
#include "base/version.hpp"
#include "runtime/collectives/hierarchical/hierarchical_backend.hpp"
#include "runtime/collectives/local_backend.hpp"
#include "runtime/collectives/shm/segment.hpp"
#include "runtime/collectives/shm/sharing.hpp"
#include "runtime/collectives/shm/shm_backend.hpp"

namespace runjob::runtime {
namespace {

/// PyTorch and others export gloo:: symbols of another Gloo. DEEPBIND lets a module see its own library
/// first; the sanitizers refuse it, since it would also pass by their malloc.
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

constexpr Known kKnown[] = {
    {"gloo", "cpu", nullptr},
    {"mpi", "cpu", "this version of runjob has no MPI backend"},
    {"nccl", "gpu", "this version of runjob has no NCCL backend"},
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

/// The module's table. A module stays open: its threads' code must not go away.
/// Errors  Error(kUnavailable).
const BackendPlugin& open_module(const std::string& name) {
  const std::string path = module_path(name);
  void* module = ::dlopen(path.c_str(), kOpenFlags);
  if (module == nullptr) throw Error(Errc::kUnavailable, ::dlerror());
  const auto* plugin = static_cast<const BackendPlugin*>(::dlsym(module, kPluginSymbol));
  if (plugin == nullptr) throw Error(Errc::kUnavailable, fmt::format("{}: not a backend of runjob", path));
  if (std::string_view(plugin->build) != kVersion) {
    throw Error(Errc::kUnavailable,
                fmt::format("{}: is of runjob {}, but librunjob is {}", path, plugin->build, kVersion));
  }
  return *plugin;
}

nlohmann::ordered_json describe(const Known& known) {
  nlohmann::ordered_json entry = {{"name", known.name}, {"kind", known.kind}, {"available", false},
                                  {"version", ""},      {"path", ""},         {"reason", ""}};
  try {
    if (known.why_absent != nullptr) throw Error(Errc::kUnavailable, known.why_absent);
    const BackendPlugin& plugin = open_module(known.name);
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

std::unique_ptr<Backend> make_gloo(const MeshOptions& options) {
  std::unique_ptr<Backend> backend;
  open_module("gloo").create(options, backend).throw_if_failed();
  return backend;
}

Error no_backend(const MeshOptions& options, const Error& why) {
  return Error(Errc::kUnavailable, fmt::format("no backend for {} ranks: {}", options.size, why.what()));
}

std::unique_ptr<Transport> make_gloo_transport(const TransportOptions& options) {
  std::unique_ptr<Transport> transport;
  open_module("gloo").create_transport(options, transport).throw_if_failed();
  return transport;
}

}  // namespace

std::unique_ptr<Backend> make_shared_memory_backend(const MeshOptions& options, const std::string& socket_directory) {
  return std::make_unique<ShmBackend>(options, socket_directory);
}

std::unique_ptr<Backend> make_hierarchical_backend(const MeshOptions& options, const std::string& socket_directory) {
  try {
    return std::make_unique<HierarchicalBackend>(options, socket_directory, HostParts{make_gloo_transport, make_gloo});
  } catch (const Error& error) {
    throw no_backend(options, error);
  }
}

SharingVerdict judge_sharing(const std::vector<std::string>& addresses, const std::vector<int>& hosts) {
  if (std::any_of(addresses.begin(), addresses.end(), is_host_offer)) {
    const std::optional<std::string> objection = objection_to_hosts(addresses, hosts);
    return {!objection, objection.value_or("")};
  }
  if (std::none_of(addresses.begin(), addresses.end(), is_sharing_offer)) return {};
  const std::optional<std::string> objection = objection_to_sharing(addresses);
  return {!objection, objection.value_or("")};
}

std::unique_ptr<Backend> make_backend(const MeshOptions& options) {
  if (options.size == 1) return std::make_unique<LocalBackend>();
  try {
    return make_gloo(options);
  } catch (const Error& error) {
    throw no_backend(options, error);
  }
}

std::string backends_json() {
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  list.push_back(describe_shared_memory());
  for (const Known& known : kKnown) list.push_back(describe(known));
  return nlohmann::ordered_json{{"backends", std::move(list)}}.dump(-1, ' ', false,
                                                                    nlohmann::ordered_json::error_handler_t::replace);
}

}  // namespace runjob::runtime
