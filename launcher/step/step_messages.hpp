#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/environment.hpp"
#include "rendezvous/job_key.hpp"

/// What the tasks of a SLURM step say to task 0 to become one job, each sealed (munge.hpp), as JSON. A task sends one line,
/// its StepHello, and gets one, the StepWelcome, when all have come (StepEnd: over the rendezvous). docs/slurm.md has it for readers of the wire.
namespace runjob {

struct StepHello {
  std::string step;   ///< "12.0"; both sides must be of one
  std::string nonce;  ///< comes back in the welcome, which so is no recording
  int rank = 0;
  int size = 1;
  int node = 0;  ///< index of its node among the step's
  std::string node_name;
  int free_port = 0;  ///< on its node, for MASTER_PORT
};

struct StepWelcome {
  std::string nonce;
  int port = 0;  ///< of the rendezvous, at the address where the welcome came from
  rendezvous::JobKey key;
  std::string address;    ///< numeric: by it the other nodes reach this one; "" when there is one node
  Environment variables;  ///< rank_variables()
};

/// What tasks that still run learn when the job is to end.
struct StepEnd {
  int status = 0;  ///< the job's, with which they end
  std::int64_t grace_ms = 10'000;
};

std::string encode(const StepHello& hello);
std::string encode(const StepWelcome& welcome);
std::string encode(const StepEnd& end);
/// Instead of a welcome: why there will be none.
std::string encode_refusal(std::string_view nonce, const std::string& reason);

/// Errors  Error(kProtocol) for what is no such document.
StepHello parse_step_hello(const std::string& text);
/// Errors  likewise; Error(kAuth) when it is not the answer to `nonce`; Error(kUnavailable) with a refusal's reason.
StepWelcome parse_step_welcome(const std::string& text, const std::string& nonce);
StepEnd parse_step_end(const std::string& text);

/// What task 0 says to whoever connects, so that a task knows at once that it is not somebody else's port.
inline constexpr std::string_view kStepGreeting = "runjob step 1\n";
inline constexpr std::size_t kMaxStepLineBytes = 256 * 1024;

/// The ports of its node on which task 0 of `step` may listen, which all tasks work out alike: below the ephemeral range.
std::array<int, 8> step_ports(std::string_view step);

}  // namespace runjob
