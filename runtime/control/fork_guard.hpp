#pragma once

/// Keeps fork()ed children of a rank out of the job. A child has a copy of every socket, so the death of its
/// parent would not be seen by the other ranks while, for instance, a data loader's worker lives on.
namespace runjob::runtime::fork_guard {

/// Calls `in_child` in every child of fork() from now on, on its only thread. Once per process.
/// `in_child` must not take locks that other threads of the parent may have held.
void install(void (*in_child)());

/// A child closes `fd` at once.
/// Threads  any.
void add(int fd);
/// Closes it here, and lets children alone that come later.
void close(int fd);

}  // namespace runjob::runtime::fork_guard
