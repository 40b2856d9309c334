#pragma once

namespace runjob {

/// Opens /dev/null for each of descriptors 0, 1 and 2 that is closed, so that no file opened later gets their numbers.
/// Must be called before anything else opens a descriptor.
void open_standard_descriptors();

}  // namespace runjob
