#include "base/utc_time.hpp"

#include <ctime>

#include <fmt/format.h>

namespace runjob {

std::string utc_time(std::chrono::system_clock::time_point time) {
  const auto second = std::chrono::floor<std::chrono::seconds>(time);
  const std::time_t since_1970 = std::chrono::system_clock::to_time_t(second);
  std::tm parts{};
  ::gmtime_r(&since_1970, &parts);
  char text[32];
  const std::size_t length = std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%S", &parts);
  const auto milliseconds = std::chrono::duration_cast<std::chrono::milliseconds>(time - second).count();
  return fmt::format("{}.{:03}Z", std::string_view(text, length), milliseconds);
}

}  // namespace runjob
