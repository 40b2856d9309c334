#include "runtime/control/fork_guard.hpp"

#include <mutex>
#include <pthread.h>
#include <set>
#include <unistd.h>

namespace runjob::runtime::fork_guard {
namespace {

/// The guard's state. It is never destroyed, because threads may still run while the process exits.
struct State {
  std::mutex mutex;  // held across fork(), so that a child finds `descriptors` consistent
  std::set<int> descriptors;
  void (*in_child)() = nullptr;
};

State& state() {
  static State& instance = *new State;
  return instance;
}

void before_fork() {
  state().mutex.lock();
}

void after_fork_in_parent() {
  state().mutex.unlock();
}

void after_fork_in_child() {
  for (const int fd : state().descriptors) ::close(fd);
  state().descriptors.clear();
  state().mutex.unlock();
  if (state().in_child != nullptr) state().in_child();
}

}  // namespace

void install(void (*in_child)()) {
  static std::once_flag once;
  std::call_once(once, [&] {
    state().in_child = in_child;
    ::pthread_atfork(before_fork, after_fork_in_parent, after_fork_in_child);
  });
}

void add(int fd) {
  const std::lock_guard lock(state().mutex);
  state().descriptors.insert(fd);
}

void close(int fd) {
  const std::lock_guard lock(state().mutex);  // no fork between the two lines
  state().descriptors.erase(fd);
  ::close(fd);
}

}  // namespace runjob::runtime::fork_guard
