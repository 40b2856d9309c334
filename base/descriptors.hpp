#pragma once

#include <vector>

namespace runjob {

/// Opens /dev/null for each of descriptors 0, 1 and 2 that is closed, so that no file opened later gets their numbers.
/// Must be called before anything else opens a descriptor.
void open_standard_descriptors();

/// The descriptors that this process has open, and one more, by which the list was read and which is closed again.
/// Empty if the system does not list them.
std::vector<int> open_descriptors();

}  // namespace runjob
