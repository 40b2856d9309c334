#include "base/json_text.hpp"

#include <nlohmann/json.hpp>

namespace runjob {

nlohmann::json parse_json(std::string_view text) {
  return nlohmann::json::parse(text);
}

nlohmann::json try_parse_json(std::string_view text) {
  return nlohmann::json::parse(text, nullptr, false);
}

nlohmann::json parse_cbor(std::string_view bytes) {
  return nlohmann::json::from_cbor(bytes);
}

std::string json_text(const nlohmann::json& document, int indent) {
  return document.dump(indent, ' ', false, nlohmann::json::error_handler_t::replace);
}

std::string ordered_json_text(const nlohmann::ordered_json& document, int indent) {
  return document.dump(indent, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

std::string strict_json_text(const nlohmann::json& document) {
  return document.dump();
}

std::string cbor_bytes(const nlohmann::json& document) {
  std::string bytes;
  nlohmann::json::to_cbor(document, bytes);
  return bytes;
}

}  // namespace runjob
