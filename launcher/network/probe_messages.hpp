#pragma once

#include <chrono>
#include <string>
#include <string_view>
#include <vector>

#include "launcher/channel/messages.hpp"
#include "launcher/network/probe_outcome.hpp"

/// The control payloads by which the launcher lets its agents try each other's addresses, as values: see messages.hpp.
namespace runjob {

/// Who an agent is, for as long as it is tried: two secrets of 16 bytes. Whoever connects sends `question`, and is answered with
/// `answer` by that agent and by nobody else, least of all by a host that happens to have the same address.
struct ProbeToken {
  static constexpr std::size_t kBytes = 16;
  std::string question;
  std::string answer;

  bool operator==(const ProbeToken&) const = default;
};

/// Listen on these addresses, on any port, and answer to the token.
struct ProbeListen {
  ProbeToken token;
  std::vector<std::string> addresses;
};

/// Where the agent listens now.
struct ProbePort {
  int port = 0;          ///< 0 = it cannot
  int error_number = 0;  ///< then why, as errno

  bool operator==(const ProbePort&) const = default;
};
struct ProbeListening {
  std::vector<ProbePort> ports;  ///< for each address, in order
};

struct ProbeTarget {
  int host = 0;  ///< the launcher's index of the host whose address it is
  std::string address;
  int port = 0;
  ProbeToken token;
};

/// Connect to all of these at the same time. A host of which one address has answered gets little more time for its others.
struct ProbeConnect {
  std::vector<ProbeTarget> targets;
  std::int64_t limit_ms = 1000;  ///< for all of it
};

struct ProbeResults {
  std::vector<ProbeOutcome> outcomes;  ///< for each target, in order
};

template <>
std::string encode(const ProbeListen& message);
template <>
std::string encode(const ProbeListening& message);
template <>
std::string encode(const ProbeConnect& message);
template <>
std::string encode(const ProbeResults& message);

template <>
ProbeListen decode(std::string_view payload);
template <>
ProbeListening decode(std::string_view payload);
template <>
ProbeConnect decode(std::string_view payload);
template <>
ProbeResults decode(std::string_view payload);

}  // namespace runjob
