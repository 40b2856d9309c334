#pragma once

namespace runjob {

/// Opens /dev/null for each of descriptors 0, 1 and 2 that is closed, so that none of them comes to mean something else.
/// To be called before anything else opens a descriptor.
void open_standard_descriptors();

}  // namespace runjob
