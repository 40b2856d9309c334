#include "runtime/mpi_start/key_store.hpp"

#include <atomic>
#include <memory>
#include <unistd.h>

#include <fmt/format.h>

#include "base/error.hpp"
#include "runtime/mpi_start/pmi_store.hpp"
#include "runtime/mpi_start/pmix_store.hpp"

namespace runjob::runtime {

namespace {

std::unique_ptr<KeyStore> open_key_store(const ForeignLauncher& launcher) {
  switch (launcher.store) {
    case ForeignLauncher::Store::kPmix:
      return std::make_unique<PmixStore>(launcher);
    case ForeignLauncher::Store::kPmi:
      return std::make_unique<PmiStore>(launcher);
    case ForeignLauncher::Store::kNone:
    case ForeignLauncher::Store::kUnknown:
      break;
  }
  throw Error(Errc::kUnavailable,
              fmt::format("init(): {} has started this process as one of several, but with neither PMIx nor PMI's "
                          "socket (PMI_FD) to find the "
                          "others; start the program with runjob -np N, or in Python install mpi4py",
                          launcher.name));
}

/// The only store of the process. It is never destroyed, because a thread may be using it when the process ends.
std::atomic<KeyStore*> opened{nullptr};
std::atomic<pid_t> owner{0};

/// Runs after all functions that are registered with atexit(). MPI's finalisation in mpi4py is one of them, and an MPI
/// uses the store until then.
[[gnu::destructor]] void leave_store() {
  KeyStore* store = opened.load();
  // The launcher does not wait for a forked child.
  if (store != nullptr && owner.load() == ::getpid() && !store->fence_is_open()) store->leave();
}

}  // namespace

void KeyStore::fence(TimePoint deadline) {
  fence_is_open_ = true;
  wait_for_all(deadline);
  fence_is_open_ = false;
}

KeyStore& process_key_store(const ForeignLauncher& launcher) {
  if (KeyStore* store = opened.load()) {
    if (owner.load() == ::getpid()) return *store;
    throw Error(Errc::kAborted,
                "init(): this process is a child of a rank that has called init() before, and has no place in the job");
  }
  owner = ::getpid();
  opened = open_key_store(launcher).release();
  return *opened.load();
}

}  // namespace runjob::runtime
