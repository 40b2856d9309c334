#include "rendezvous/target.hpp"

#include <charconv>
#include <limits>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/parse.hpp"
#include "rendezvous/protocol.hpp"

namespace runjob::rendezvous {
namespace {

std::string percent_decode(std::string_view text) {
  std::string bytes;
  bytes.reserve(text.size());
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      bytes += text[i];
      continue;
    }
    unsigned value = 0;
    const std::string_view digits = text.substr(i + 1, 2);
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value, 16);
    if (digits.size() != 2 || error != std::errc() || end != digits.data() + 2)
      throw Error(Errc::kUsage, fmt::format("expected two hex digits after '%', found '{}'", digits));
    bytes += static_cast<char>(value);
    i += 2;
  }
  return bytes;
}

/// Calls `visit` with each piece of `text` between separators, the empty ones too.
template <class Visit>
void split(std::string_view text, char separator, Visit visit) {
  for (;;) {
    const std::size_t end = text.find(separator);
    visit(text.substr(0, end));
    if (end == text.npos) return;
    text.remove_prefix(end + 1);
  }
}

void set_once(std::optional<int>& field, const std::string& value, std::string_view name, int low) {
  if (field) throw Error(Errc::kUsage, fmt::format("parameter '{}' is given twice", name));
  field = static_cast<int>(parse_integer(value, name, low, std::numeric_limits<int>::max()));
}

void set_parameter(Target& target, std::string_view text) {
  const std::size_t equals = text.find('=');
  const std::string_view name = text.substr(0, equals);
  const std::string value = equals == text.npos ? "" : percent_decode(text.substr(equals + 1));
  if (name == "count") {
    set_once(target.count, value, name, 1);
  } else if (name == "index") {
    set_once(target.index, value, name, 0);
  } else if (name == "generation") {
    set_once(target.generation, value, name, 0);
  } else if (name == "after") {
    set_once(target.after, value, name, 0);
  } else if (name == "wait" && !target.wait) {
    target.wait = parse_duration(value, name);
  } else if (name == "call" && target.call.empty()) {
    if (value.empty() || value.size() > kMaxNameBytes)
      throw Error(Errc::kUsage, fmt::format("call: expected 1 to {} bytes, found {}", kMaxNameBytes, value.size()));
    target.call = value;
  } else {
    throw Error(Errc::kUsage, fmt::format("unknown or repeated parameter '{}'", name));
  }
}

}  // namespace

Target parse_target(std::string_view text) {
  const std::size_t question = text.find('?');
  const std::string_view path = text.substr(0, question);
  if (path.empty() || path.front() != '/')
    throw Error(Errc::kUsage, fmt::format("expected a path that starts with '/', found '{}'", path.substr(0, 80)));
  Target target;
  split(path.substr(1), '/', [&target](std::string_view segment) {
    if (segment.empty()) throw Error(Errc::kUsage, "the path has an empty segment");
    target.path.push_back(percent_decode(segment));
    if (target.path.back().size() > kMaxNameBytes)
      throw Error(Errc::kUsage,
                  fmt::format("a name of {} bytes is over the limit of {}", target.path.back().size(), kMaxNameBytes));
  });
  if (question != text.npos)
    split(text.substr(question + 1), '&', [&target](std::string_view piece) { set_parameter(target, piece); });
  return target;
}

std::string percent_encode(std::string_view bytes) {
  constexpr std::string_view kUnreserved = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~";
  std::string text;
  for (const char c : bytes) {
    if (kUnreserved.find(c) != kUnreserved.npos) {
      text += c;
    } else {
      text += fmt::format("%{:02X}", static_cast<unsigned char>(c));
    }
  }
  return text;
}

}  // namespace runjob::rendezvous
