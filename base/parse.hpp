#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

/// Strict parsing of values from flags, variables and files: the whole text is consumed or Error(kUsage) is
/// thrown, naming `what` (the option or variable), the text and the accepted form. Pure functions.
namespace runjob {

/// A decimal integer in [low, high], with an optional sign.
std::int64_t parse_integer(std::string_view text, std::string_view what, std::int64_t low, std::int64_t high);

/// A decimal number in [low, high], with an optional sign: "0.8", "1".
double parse_number(std::string_view text, std::string_view what, double low, double high);

/// true, false, yes, no, on, off in any case, or a whole number, which is true above 0, as for Horovod.
bool parse_bool(std::string_view text, std::string_view what);

/// A size in bytes: "1048576", or with KB, MB, GB (or K, M, G, KiB, MiB, GiB), all meaning powers of 1024.
std::int64_t parse_bytes(std::string_view text, std::string_view what);

/// A non-negative time: seconds ("30", "0.5") or with a unit: "500ms", "30s", "10m", "2h".
std::chrono::milliseconds parse_duration(std::string_view text, std::string_view what);

/// A non-negative number of milliseconds, at most an hour: "1", "0.25".
std::chrono::microseconds parse_milliseconds(std::string_view text, std::string_view what);

}  // namespace runjob
