#include "launcher/output/output_time.hpp"

#include <cstdlib>
#include <ctime>

#include <fmt/format.h>

namespace runjob {
namespace {

std::string format_time(const std::tm& time, const char* format) {
  char text[64];
  return std::string(text, std::strftime(text, sizeof text, format, &time));
}

}  // namespace

const std::string& OutputTime::text(std::int64_t time_us) {
  if (format_ == Format::kNone) return text_;
  constexpr std::int64_t kPerSecond = 1'000'000;
  if (const std::int64_t second = time_us / kPerSecond; second != second_) set_second(second);
  if (format_ == Format::kMicroseconds) text_ = fmt::format("{}.{:06}{}", before_, time_us % kPerSecond, after_);
  return text_;
}

void OutputTime::set_second(std::int64_t second) {
  second_ = second;
  const auto time = static_cast<std::time_t>(second);
  std::tm local{};
  ::localtime_r(&time, &local);
  if (format_ == Format::kSeconds) {
    text_ = format_time(local, "%a %b %e %H:%M:%S %Y");
    return;
  }
  const long minutes = std::labs(local.tm_gmtoff) / 60;
  before_ = format_time(local, "%Y-%m-%dT%H:%M:%S");
  after_ = fmt::format("{}{:02}:{:02} ", local.tm_gmtoff < 0 ? '-' : '+', minutes / 60, minutes % 60);
}

}  // namespace runjob
