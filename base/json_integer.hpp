#pragma once

#include <concepts>
#include <cstdint>
#include <string>
#include <utility>

#include <nlohmann/json.hpp>

namespace runjob {

/// The integer that `value` is. nlohmann's own get() cuts a number that is too large for the type, and converts
/// fractions, without an error.
/// Threads  any.
/// Errors   nlohmann::json::exception when `value` is no integer, or not one of this type.
template <std::integral Integer>
Integer json_integer(const nlohmann::json& value) {
  constexpr int kNoInteger = 302, kOutOfRange = 406;  // nlohmann's numbers for such mistakes
  const auto converted = [](auto number) {
    if (!std::in_range<Integer>(number))
      throw nlohmann::json::out_of_range::create(kOutOfRange, std::to_string(number) + " is out of range", nullptr);
    return static_cast<Integer>(number);
  };
  if (value.is_number_unsigned()) return converted(value.get<std::uint64_t>());
  if (value.is_number_integer()) return converted(value.get<std::int64_t>());
  throw nlohmann::json::type_error::create(
      kNoInteger, std::string("a ") + value.type_name() + " stands where an integer is expected", nullptr);
}

}  // namespace runjob
