#pragma once

#include <string>
#include <string_view>

#include <nlohmann/json_fwd.hpp>

/// JSON documents from and to text and CBOR (RFC 8949). The parsers and writers of nlohmann/json are templates, which
/// take seconds to compile in each source that calls them. Only json_text.cc calls them.
/// Threads  any.
namespace runjob {

/// Errors  nlohmann::json::exception when `text` is not exactly one document.
nlohmann::json parse_json(std::string_view text);
/// The same; when `text` is not a document, the result is_discarded().
nlohmann::json try_parse_json(std::string_view text);
/// Errors  nlohmann::json::exception when `bytes` are not exactly one document, and as check_cbor_levels().
nlohmann::json parse_cbor(std::string_view bytes);
/// For a reader that calls nlohmann's CBOR parser itself, before it does: the parser calls itself once for each level
/// of a document and for each piece of a string, so that 200 kB of a sender's choice would exceed a thread's stack.
/// Errors  nlohmann::json::exception for a document of more than 32 levels, and for items without a length, which
///         cbor_bytes() does not write. Other mistakes are left to the parser.
void check_cbor_levels(std::string_view bytes);

/// In one line, or with `indent` spaces for each level. Bytes that are not UTF-8 become U+FFFD.
std::string json_text(const nlohmann::json& document, int indent = -1);
std::string ordered_json_text(const nlohmann::ordered_json& document, int indent = -1);
std::string cbor_bytes(const nlohmann::json& document);

}  // namespace runjob
