#include <dlfcn.h>
#include <filesystem>

#include <gloo/allreduce.h>
#include <gloo/config.h>

#include "base/version.hpp"
#include "runtime/collectives/gloo/gloo_backend.hpp"

namespace {

using namespace runjob::runtime;

runjob::Status create(const MeshOptions& options, std::unique_ptr<Transport> transport,
                      std::unique_ptr<DataBackend>& backend) {
  try {
    backend = std::make_unique<GlooBackend>(options, std::move(transport));
    return {};
  } catch (const std::exception& error) {
    return runjob::Status(runjob::Errc::kUnavailable, std::string("Gloo: ") + error.what());
  }
}

const char* library_version() {
  static const std::string version = std::to_string(GLOO_VERSION_MAJOR) + "." + std::to_string(GLOO_VERSION_MINOR) +
                                     "." + std::to_string(GLOO_VERSION_PATCH);
  return version.c_str();
}

/// The path that the loader found, with links such as /lib resolved.
std::string find_library() {
  Dl_info info{};
  void (*function)(const gloo::AllreduceOptions&) = &gloo::allreduce;
  if (::dladdr(reinterpret_cast<void*>(function), &info) == 0) return {};
  const std::filesystem::path path(info.dli_fname);
  std::error_code error;
  const std::filesystem::path folder = std::filesystem::canonical(path.parent_path(), error);
  return error ? path.string() : (folder / path.filename()).string();
}

const char* library_path() {
  static const std::string path = find_library();
  return path.c_str();
}

}  // namespace

/// The symbol that librunjob.so looks up: see runtime/collectives/backend.hpp.
extern "C" __attribute__((visibility("default")))
const BackendPlugin runjob_backend_plugin = {runjob::kVersion, create, library_version, library_path};
