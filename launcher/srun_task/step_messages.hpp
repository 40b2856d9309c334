#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/environment.hpp"
#include "hostfile/slurm_task.hpp"
#include "rendezvous/job_key.hpp"

/// The messages by which the tasks of a SLURM step become one job, as CBOR, each sealed (munge.hpp). A task sends one
/// line to task 0, its StepHello, and receives one, the StepWelcome, when all tasks have sent theirs. StepEnd travels
/// over the rendezvous. docs/slurm.md describes them on the wire.
namespace runjob {

struct StepHello {
  std::string step;   ///< "12.0"; the same for both sides
  std::string nonce;  ///< is repeated in the welcome, which shows that it is no recording
  int rank = 0;
  int size = 1;
  int node = 0;  ///< index of its node among the step's
  std::string node_name;
  int free_port = 0;  ///< on its node, for MASTER_PORT
  int called = 0;     ///< the port of task 0 that it has called: a stranger's, who passes a hello on, is another one
};

struct StepWelcome {
  std::string nonce;
  int port = 0;  ///< of the rendezvous, at the address that sent the welcome
  rendezvous::JobKey key;
  std::string address;    ///< numeric: the one by which the other nodes reach this one; "" if there is one node
  Environment variables;  ///< rank_variables()
};

/// Tells the tasks that still run that the job has to end.
struct StepEnd {
  int status = 0;  ///< the job's, with which the tasks end
  std::int64_t grace_ms = 10'000;
};

std::string encode(const StepHello& hello);
/// The text has the job's key: wipe() it.
std::string encode(const StepWelcome& welcome);
std::string encode(const StepEnd& end);
/// The answer in place of a welcome, with the reason.
std::string encode_refusal(std::string_view nonce, const std::string& reason);

/// Errors  Error(kProtocol) for a text that is no such document.
StepHello parse_step_hello(const std::string& text);
/// Errors  the same; Error(kAuth) if it is not the answer to `nonce`; Error(kUnavailable) with the reason of a refusal.
StepWelcome parse_step_welcome(const std::string& text, const std::string& nonce);
StepEnd parse_step_end(const std::string& text);

/// Task 0 sends this line to every client, so that a task knows at once that the port is not of another program.
inline constexpr std::string_view kStepGreeting = "runjob step 2\n";
inline constexpr std::size_t kMaxStepHelloBytes = 16 * 1024;
inline constexpr std::size_t kMaxStepWelcomeBytes = 256 * 1024;

/// The ports of its node on which task 0 may listen, best first; every task computes the same ones. Those that SLURM
/// has reserved, then 64 that follow from the step, below the ephemeral range.
std::vector<int> step_ports(const SlurmTask& task);
/// The name (step_names.hpp) under which task 0 publishes the port on which it listens, where the step has names and no
/// reserved ports.
inline constexpr std::string_view kStepPortName = "runjob-port";

}  // namespace runjob
