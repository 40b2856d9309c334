#include "runtime/collectives/cuda/driver.hpp"

#include <algorithm>
#include <atomic>
#include <dlfcn.h>
#include <iterator>
#include <mutex>
#include <unistd.h>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/library_function.hpp"
#include "runtime/collectives/cuda/nvidia.hpp"

namespace runjob::runtime::cuda {
namespace {

using nvidia::kDriverFile;
using nvidia::kOldestDriver;

/// The process that has opened the driver; 0 for none.
std::atomic<pid_t> opener{0};

template <std::size_t size>
bool contains(const Result (&list)[size], Result result) {
  return std::find(std::begin(list), std::end(list), result) != std::end(list);
}

const char* advice(Result result) {
  if (contains(nvidia::kLostContextErrors, result))
    return "; after this error the GPU is lost to the process, which must end";
  if (contains(nvidia::kLostGpuErrors, result))
    return "; the GPU is gone: see nvidia-smi, and NVRM in the kernel's log of this host; this process must end";
  return "";
}

std::string path_of(const void* function) {
  Dl_info info{};
  return ::dladdr(function, &info) == 0 || info.dli_fname == nullptr ? kDriverFile : info.dli_fname;
}

Driver open() {
  void* library = ::dlopen(kDriverFile, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    throw Error(
        Errc::kUnavailable,
        fmt::format("NVIDIA's driver cannot be opened ({}); tensors on a GPU need it on this host", ::dlerror()));
  }
  Driver opened;
#define RUNJOB_CUDA_FIND(member, symbol, arguments) \
  find_function(library, symbol, opened.member, kDriverFile, ": it is too old");
  RUNJOB_CUDA_FUNCTIONS(RUNJOB_CUDA_FIND)
#undef RUNJOB_CUDA_FIND
  opened.path = path_of(reinterpret_cast<const void*>(opened.init));
  if (const Result result = opened.init(0); result != kSuccess)
    throw Error(Errc::kUnavailable, fmt::format("{}: cuInit(): {}", opened.path, error_text(opened, result)));
  opener.store(::getpid());
  opened.driver_version(&opened.version);
  if (opened.version >= kOldestDriver) return opened;
  throw Error(Errc::kUnavailable,
              fmt::format("{} supports CUDA {}, and runjob needs {} or newer: install a newer driver", opened.path,
                          version_text(opened.version), version_text(kOldestDriver)));
}

}  // namespace

const Driver& driver() {
  static const Driver opened = open();  // tried again by the next call when it throws
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
  throw Error(Errc::kDevice, fmt::format("{}: {}{}", action, error_text(driver(), result), advice(result)));
}

std::string version_text(int version) {
  return fmt::format("{}.{}", version / 1000, version % 1000 / 10);
}

}  // namespace runjob::runtime::cuda
