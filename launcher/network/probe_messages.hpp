#pragma once

#include <chrono>
#include <string>
#include <string_view>
#include <vector>

#include "launcher/channel/messages.hpp"
#include "launcher/network/probe_outcome.hpp"

/// The control payloads of the probe, in which the agents try each other's addresses, as values: see messages.hpp.
namespace runjob {

/// Identifies an agent during the probe: two secrets of 16 bytes. The connecting agent sends `question`, and only this
/// agent can send `answer`, not another host that has the same address.
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
  std::int64_t probe = 0;          ///< the number of the probe in the job; an answer has that of its request
  bool asks_for_networks = false;  ///< the answer is to describe the host's networks as they are now
};

/// Where the agent listens now.
struct ProbePort {
  int port = 0;          ///< 0 = it cannot
  int error_number = 0;  ///< the reason if the port is 0, as errno

  bool operator==(const ProbePort&) const = default;
};
struct ProbeListening {
  std::vector<ProbePort> ports;  ///< for each address, in order
  std::int64_t probe = 0;
  NetworkFacts networks = {};  ///< if asked for
};

struct ProbeTarget {
  int host = 0;  ///< the launcher's index of the host whose address it is
  std::string address;
  int port = 0;
  ProbeToken token;
};

/// Connect to all of these at the same time. When one address of a host has answered, its other addresses get little
/// more time.
struct ProbeConnect {
  std::vector<ProbeTarget> targets;
  std::int64_t limit_ms = 1000;  ///< for all of it
  std::int64_t probe = 0;
};

struct ProbeResults {
  std::vector<ProbeOutcome> outcomes;  ///< for each target, in order
  std::int64_t probe = 0;
};

}  // namespace runjob
