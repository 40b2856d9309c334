#pragma once

#include <string>

namespace runjob::tensorflow {

/// Registers the signatures of all operations with TensorFlow: Horovod's names with their attributes, followed by
/// runjob's. The operations have side effects ("stateful"): each runs as often as the program states, and none is
/// folded into a constant or merged with another. Returns the error's text; empty for none.
std::string define_operations();

}  // namespace runjob::tensorflow
