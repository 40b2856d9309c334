#pragma once

#include <chrono>
#include <string>

namespace runjob {

/// The time in UTC to the millisecond: "2026-11-28T12:08:45.123Z".
/// Source  RFC 3339, section 5.6.
std::string utc_time(std::chrono::system_clock::time_point time);

}  // namespace runjob
