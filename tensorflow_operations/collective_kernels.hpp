#pragma once

#include <string>

namespace runjob::tensorflow {

/// Registers the kernels of the collectives. Returns what went wrong; empty when nothing did.
///
/// is_asynchronous  a kernel returns at once, and TensorFlow's thread is free for other operations until the collective is done. Else the
///                  thread waits: with fewer threads than collectives that the program has at once, in another order on each rank,
///                  that can be for ever.
std::string register_collective_kernels(bool is_asynchronous);

}  // namespace runjob::tensorflow
