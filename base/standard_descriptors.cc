#include "base/standard_descriptors.hpp"

#include <fcntl.h>
#include <unistd.h>

namespace runjob {

void open_standard_descriptors() {
  for (int descriptor = 0; descriptor <= 2; ++descriptor) {
    if (::fcntl(descriptor, F_GETFD) >= 0) continue;
    // open() returns the lowest free number, and all numbers below it are open. Reading from it gives the end, writing
    // succeeds.
    static_cast<void>(!::open("/dev/null", O_RDWR));
  }
}

}  // namespace runjob
