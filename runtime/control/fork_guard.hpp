#pragma once

/// Keeps fork()ed children of a rank out of the job. A child has a copy of every socket. Without this guard the other
/// ranks would not notice the death of its parent while, for instance, a data loader's worker lives on.
namespace runjob::runtime::fork_guard {

/// Calls `in_child` in every child of fork() from now on, on its only thread. Called once per process. `in_child` must
/// not take locks that other threads of the parent may have held.
void install(void (*in_child)());

/// From now on, a child closes `fd` at once.
/// Threads  any.
void add(int fd);
/// Closes `fd` in this process. Later children do not close it.
void close(int fd);

}  // namespace runjob::runtime::fork_guard
