#include "base/pmix/pmix_library.hpp"

#include <dlfcn.h>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/library_function.hpp"

namespace runjob {
namespace {

constexpr char kFile[] = "libpmix.so.2";

/// Returns null when no folder has the library; `tried` gets the system's messages.
void* open(const std::vector<std::string>& folders, std::string& tried) {
  if (void* library = ::dlopen(kFile, RTLD_NOW | RTLD_LOCAL | RTLD_NOLOAD)) return library;
  for (const std::string& folder : folders) {
    if (void* library = ::dlopen(fmt::format("{}/{}", folder, kFile).c_str(), RTLD_NOW | RTLD_LOCAL)) return library;
  }
  void* library = ::dlopen(kFile, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) tried = ::dlerror();
  return library;
}

}  // namespace

PmixLibrary open_pmix_library(const std::vector<std::string>& folders) {
  std::string tried;
  void* library = open(folders, tried);
  if (library == nullptr) throw Error(Errc::kUnavailable, tried);
  const auto find = [library](const char* name, auto& function) { find_function(library, name, function, kFile); };
  PmixLibrary functions;
  find("PMIx_Init", functions.init);
  find("PMIx_Finalize", functions.finalize);
  find("PMIx_Put", functions.put);
  find("PMIx_Commit", functions.commit);
  find("PMIx_Fence_nb", functions.fence);
  find("PMIx_Get_nb", functions.get);
  find("PMIx_Register_event_handler", functions.add_event_handler);
  find("PMIx_Error_string", functions.error_text);
  return functions;
}

}  // namespace runjob
