#include "runtime/collectives/cuda/driver.hpp"

#include <algorithm>
#include <atomic>
#include <dlfcn.h>
#include <mutex>
#include <span>
#include <unistd.h>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/library_function.hpp"

namespace runjob::runtime::cuda {
namespace {

/// The process that has opened the driver; 0 for none.
std::atomic<pid_t> opener{0};

bool contains(std::span<const int> list, Result result) {
  return std::find(list.begin(), list.end(), result) != list.end();
}

std::string advice(const Vendor& vendor, Result result) {
  if (contains(vendor.lost_context_errors, result))
    return "; after this error the GPU is lost to the process, which must end";
  if (contains(vendor.lost_gpu_errors, result))
    return fmt::format("; the GPU is gone: see {}; this process must end", vendor.where_to_look);
  return {};
}

std::string path_of(const Vendor& vendor, const void* function) {
  Dl_info info{};
  return ::dladdr(function, &info) == 0 || info.dli_fname == nullptr ? vendor.driver_files.front() : info.dli_fname;
}

Driver open(const Vendor& vendor) {
  void* library = open_first(vendor.driver_files);
  if (library == nullptr) {
    throw Error(Errc::kUnavailable,
                fmt::format("{}'s driver cannot be opened ({}); tensors on a GPU need it on this host", vendor.name,
                            ::dlerror()));
  }
  Driver opened;
  opened.vendor = &vendor;
#define RUNJOB_CUDA_FIND(member, symbol, arguments) \
  find_function(library, symbol, opened.member, vendor.driver_files.front(), ": it is too old");
  RUNJOB_CUDA_FUNCTIONS(RUNJOB_CUDA_FIND)
#undef RUNJOB_CUDA_FIND
  opened.path = path_of(vendor, reinterpret_cast<const void*>(opened.init));
  if (const Result result = opened.init(0); result != kSuccess)
    throw Error(Errc::kUnavailable, fmt::format("{}: cuInit(): {}", opened.path, error_text(opened, result)));
  opener.store(::getpid());
  opened.driver_version(&opened.version);
  if (opened.version >= vendor.oldest_driver) return opened;
  throw Error(Errc::kUnavailable,
              fmt::format("{} supports {} {}, and runjob needs {} or newer: install a newer driver", opened.path,
                          vendor.platform, version_text(opened.version), version_text(vendor.oldest_driver)));
}

}  // namespace

const Driver& driver() {
  static const Driver opened = open(kNvidia);  // tried again by the next call when it throws
  return opened;
}

bool is_forked() {
  const pid_t by = opener.load();
  return by != 0 && by != ::getpid();
}

void refuse_forked() {
  if (!is_forked()) return;
  throw Error(Errc::kUnavailable,
              "this process was forked by one that had used CUDA, which does not work in such a child; start it as a "
              "program of its own (multiprocessing: spawn), or fork before the first tensor on a GPU");
}

std::string error_text(const Driver& driver, Result result) {
  const char *name = nullptr, *text = nullptr;
  if (driver.error_name(result, &name) != kSuccess || name == nullptr) return fmt::format("error {}", result);
  if (driver.error_text(result, &text) != kSuccess || text == nullptr) return name;
  return fmt::format("{} ({})", text, name);
}

void check(Result result, const char* action) {
  if (result == kSuccess) return;
  throw Error(Errc::kDevice,
              fmt::format("{}: {}{}", action, error_text(driver(), result), advice(*driver().vendor, result)));
}

std::string version_text(int version) {
  return fmt::format("{}.{}", version / 1000, version % 1000 / 10);
}

}  // namespace runjob::runtime::cuda
