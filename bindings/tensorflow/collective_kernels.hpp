#pragma once

#include <string>

namespace runjob::tensorflow {

/// Registers the kernels of the collectives. Returns the error's text; empty for none.
///
/// is_asynchronous  true: a kernel returns at once, and TensorFlow's thread is free for other operations until the
///                  collective is done. false: the thread waits. That can be for ever, if the program has more
///                  collectives at once than threads, in another order on each rank.
std::string register_collective_kernels(bool is_asynchronous);

}  // namespace runjob::tensorflow
