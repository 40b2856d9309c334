#pragma once

#include <string>

namespace runjob::tensorflow {

/// Tells TensorFlow the signatures of all operations, Horovod's names with their attributes and ours behind them. They have side effects
/// ("stateful"): each runs as often as the program says, and none is folded into a constant or merged with another.
/// Returns what went wrong; empty when nothing did.
std::string define_operations();

}  // namespace runjob::tensorflow
