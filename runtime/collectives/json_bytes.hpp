#pragma once

#include <string>

#include <nlohmann/json.hpp>

/// Bytes, which need not be text, in a JSON document that is sent as CBOR.
namespace runjob::runtime {

inline nlohmann::json to_binary(const std::string& bytes) {
  return nlohmann::json::binary({bytes.begin(), bytes.end()});
}

/// Errors  nlohmann::json::exception when `value` is something else.
inline std::string from_binary(const nlohmann::json& value) {
  const auto& bytes = value.get_binary();
  return {bytes.begin(), bytes.end()};
}

}  // namespace runjob::runtime
