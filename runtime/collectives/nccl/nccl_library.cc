#include "runtime/collectives/nccl/nccl_library.hpp"

#include <dlfcn.h>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/library_function.hpp"
#include "runtime/collectives/cuda/vendor.hpp"

namespace runjob::runtime::nccl {
namespace {

void* open_file(const cuda::Vendor& vendor, const std::string& chosen) {
  if (!chosen.empty()) return ::dlopen(chosen.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (void* loaded = open_first(vendor.library_files, RTLD_NOLOAD)) return loaded;
  return open_first(vendor.library_files);
}

Library open(const cuda::Vendor& vendor, const std::string& chosen) {
  void* const file = open_file(vendor, chosen);
  if (file == nullptr) {
    throw Error(Errc::kUnavailable,
                fmt::format("NCCL cannot be opened ({}); install it, import PyTorch first, or name the file in "
                            "RUNJOB_NCCL_LIBRARY",
                            ::dlerror()));
  }
  const auto find = [file](const char* name, auto& function) {
    find_function(file, name, function, "NCCL", ": it is too old");
  };
  Library opened;
#define RUNJOB_NCCL_FIND(member, symbol, arguments) find(symbol, opened.member);
  RUNJOB_NCCL_FUNCTIONS(RUNJOB_NCCL_FIND)
#undef RUNJOB_NCCL_FIND
  find("ncclGetErrorString", opened.error_text);
  find("ncclGetLastError", opened.last_error);
  Dl_info info{};
  if (::dladdr(reinterpret_cast<const void*>(opened.get_version), &info) != 0 && info.dli_fname != nullptr)
    opened.path = info.dli_fname;
  check(opened, opened.get_version(&opened.version), "asking for NCCL's version");
  if (opened.version >= vendor.revoking_library)
    opened.revoke = reinterpret_cast<decltype(opened.revoke)>(::dlsym(file, "ncclCommRevoke"));
  if (opened.version >= vendor.oldest_library) return opened;
  throw Error(Errc::kUnavailable, fmt::format("{} is NCCL {}, and runjob needs {} or newer", opened.path,
                                              version_text(opened.version), version_text(vendor.oldest_library)));
}

}  // namespace

const Library& library(const std::string& chosen) {
  static const Library opened = open(cuda::kNvidia, chosen);  // tried again by the next call when it throws
  return opened;
}

void check(const Library& library, Result result, const char* action, Comm comm) {
  if (result == kSuccess) return;
  const char* const last = library.last_error(comm);
  const bool has_last = last != nullptr && *last != '\0';
  throw Error(Errc::kDevice, fmt::format("{}: NCCL {}: {}{}{}", action, version_text(library.version),
                                         library.error_text(result), has_last ? ": " : "", has_last ? last : ""));
}

std::string version_text(int version) {
  if (version < 10000) return fmt::format("{}.{}.{}", version / 1000, version % 1000 / 100, version % 100);
  return fmt::format("{}.{}.{}", version / 10000, version % 10000 / 100, version % 100);
}

}  // namespace runjob::runtime::nccl
