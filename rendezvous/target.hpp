#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace runjob::rendezvous {

/// A request's target, taken apart: "/v1/kv/a%2Fb/key?wait=2" is {"v1", "kv", "a/b", "key"} and wait=2.
struct Target {
  std::vector<std::string> path;  ///< decoded segments, none of them empty
  std::optional<int> count;
  std::optional<int> index;
  std::optional<int> generation;
  std::optional<int> after;
  std::optional<std::chrono::milliseconds> wait;
  std::string call;
};

/// Strict: every byte is accounted for. Safe on any bytes.
/// Errors  Error(kUsage) with the form that was expected: for an unknown, repeated or malformed parameter, a bad
///         escape, an empty segment.
Target parse_target(std::string_view text);

/// `bytes` as one path segment (RFC 3986, section 2.1): all but letters, digits and "-._~" become %XX.
std::string percent_encode(std::string_view bytes);

}  // namespace runjob::rendezvous
