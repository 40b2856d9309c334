#include "base/parse.hpp"

#include <algorithm>
#include <charconv>
#include <limits>
#include <optional>

#include <fmt/format.h>

#include "base/error.hpp"

namespace runjob {
namespace {

[[noreturn]] void refuse(std::string_view text, std::string_view what, std::string_view accepted) {
  throw Error(Errc::kUsage, fmt::format("{}: '{}' is not {}", what, text, accepted));
}

std::string lower(std::string_view text) {
  std::string result(text);
  std::transform(result.begin(), result.end(), result.begin(), [](unsigned char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : static_cast<char>(c);
  });
  return result;
}

/// The number at the start of `text`; `rest` becomes what follows it.
template <class Number>
std::optional<Number> leading_number(std::string_view text, std::string_view& rest) {
  Number value{};
  if (!text.empty() && text.front() == '+') text.remove_prefix(1);
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end == text.data()) return std::nullopt;
  rest = text.substr(static_cast<std::size_t>(end - text.data()));
  return value;
}

}  // namespace

std::int64_t parse_integer(std::string_view text, std::string_view what, std::int64_t low, std::int64_t high) {
  std::string_view rest;
  const auto value = leading_number<std::int64_t>(text, rest);
  if (!value || !rest.empty() || *value < low || *value > high) {
    const bool open_ended = high == std::numeric_limits<std::int64_t>::max();
    refuse(text, what,
           open_ended ? fmt::format("a whole number of at least {}", low)
                      : fmt::format("a whole number from {} to {}", low, high));
  }
  return *value;
}

double parse_number(std::string_view text, std::string_view what, double low, double high) {
  std::string_view rest;
  const auto value = leading_number<double>(text, rest);
  if (!value || !rest.empty() || !(*value >= low && *value <= high))
    refuse(text, what, fmt::format("a number from {} to {}", low, high));
  return *value;
}

bool parse_bool(std::string_view text, std::string_view what) {
  const std::string word = lower(text);
  if (word == "true" || word == "yes" || word == "on") return true;
  if (word == "false" || word == "no" || word == "off") return false;
  std::string_view rest;
  const auto number = leading_number<std::int64_t>(word, rest);
  if (number && rest.empty() && *number >= 0) return *number > 0;
  refuse(text, what, "1 or 0, true or false");
}

std::int64_t parse_bytes(std::string_view text, std::string_view what) {
  constexpr std::string_view kAccepted = "a size such as 1048576, 512KB, 64MB or 1GB";
  std::string_view rest;
  const auto value = leading_number<std::int64_t>(text, rest);
  const std::string unit = lower(rest);
  std::int64_t factor = 0;
  if (unit.empty() || unit == "b") factor = 1;
  if (unit == "k" || unit == "kb" || unit == "kib") factor = std::int64_t{1} << 10;
  if (unit == "m" || unit == "mb" || unit == "mib") factor = std::int64_t{1} << 20;
  if (unit == "g" || unit == "gb" || unit == "gib") factor = std::int64_t{1} << 30;
  if (!value || *value < 0 || factor == 0 || *value > std::numeric_limits<std::int64_t>::max() / factor) {
    refuse(text, what, kAccepted);
  }
  return *value * factor;
}

std::chrono::milliseconds parse_duration(std::string_view text, std::string_view what) {
  constexpr std::string_view kAccepted = "a time such as 30, 0.5, 500ms, 30s, 10m or 2h";
  constexpr double kLongest = 1e12;  // milliseconds, about 30 years: far inside what a clock can add
  std::string_view rest;
  const auto value = leading_number<double>(text, rest);
  const std::string unit = lower(rest);
  double factor = 0;
  if (unit.empty() || unit == "s") factor = 1e3;
  if (unit == "ms") factor = 1;
  if (unit == "m") factor = 60e3;
  if (unit == "h") factor = 3600e3;
  if (!value || !(*value >= 0) || factor == 0 || !(*value * factor <= kLongest)) refuse(text, what, kAccepted);
  return std::chrono::round<std::chrono::milliseconds>(std::chrono::duration<double, std::milli>(*value * factor));
}

std::chrono::microseconds parse_milliseconds(std::string_view text, std::string_view what) {
  constexpr double kHour = 3600e3;
  std::string_view rest;
  const auto value = leading_number<double>(text, rest);
  if (!value || !(*value >= 0) || !(*value <= kHour) || !rest.empty())
    refuse(text, what, "milliseconds such as 1 or 0.25");
  return std::chrono::round<std::chrono::microseconds>(std::chrono::duration<double, std::milli>(*value));
}

}  // namespace runjob
