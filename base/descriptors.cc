#include "base/descriptors.hpp"

#include <fcntl.h>
#include <filesystem>
#include <string>
#include <system_error>
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

std::vector<int> open_descriptors() {
  std::vector<int> descriptors;
  std::error_code unknown;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd", unknown))
    descriptors.push_back(std::stoi(entry.path().filename()));
  return descriptors;
}

}  // namespace runjob
