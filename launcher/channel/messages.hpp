#pragma once

#include <cerrno>
#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/environment.hpp"
#include "launcher/binding/bind_to.hpp"
#include "launcher/channel/network_facts.hpp"
#include "rendezvous/protocol.hpp"

/// The control payloads of frame.hpp as values. Each has encode(), to a CBOR document (RFC 8949), and
/// decode(), which throws Error(kProtocol) for anything else. Strings are bytes and need not be UTF-8:
/// environment values and paths are not.
namespace runjob {

/// The agent's facts about itself and its host.
struct Hello {
  std::string version;  ///< of runjob; must equal the launcher's
  std::int64_t pid = 0;
  std::string hostname;  ///< as the host calls itself
  int cores = 1;         ///< this many the agent may use
  int online_cores = 1;  ///< this many the host has
  int free_port = 0;     ///< was free just now, below the ephemeral range; 0 = none found. For MASTER_PORT
  NetworkFacts network;
};

/// One process to start: its number, its place, and what only it gets.
struct LaunchProcess {
  int number = 0;           ///< in a job of fixed size its rank
  Environment environment;  ///< on top of Launch::environment
  rendezvous::Place place;
  bool waiting = false;  ///< of an elastic job: the place is the one that it is meant to get, in a later generation
};

struct Launch {
  std::vector<std::string> command;
  std::string working_directory;
  Environment environment;  ///< for every process
  std::vector<LaunchProcess> processes;
  std::string topology;            ///< of the whole job, as rendezvous::to_json() encodes it
  int stdin_process = -1;          ///< the process that gets the launcher's standard input; the others get none
  std::int64_t output_window = 0;  ///< bytes of each stream that may be under way before credit is needed
  std::int64_t grace_ms = 10'000;  ///< for the agent's own ending of the ranks, when the channel dies
  BindTo bind_to = BindTo::kNone;
  int cores_per_rank = 0;   ///< with a binding to cores; 0 = each rank gets its share
  int gpus_per_rank = 0;    ///< of those that the agent finds, for ranks without CUDA_VISIBLE_DEVICES; 0 = all of them
  bool names_gpus = false;  ///< the launcher shows each rank's GPUs to the user
  int elastic_slots = 0;    ///< of an elastic job: places on this host. More launches may follow, and the agent stays.
  bool traceable = false;   ///< the agent's children may look into the ranks, also where only ancestors may (Yama)
};

struct Started {
  std::int64_t pid = 0;
  std::vector<int> cpus;          ///< that it is bound to; none = not bound
  std::vector<std::string> gpus;  ///< for people, if they were asked for: see gpu_text()
};

/// The step that failed, and errno.
struct StartFailed {
  enum class Step : std::uint8_t { kFork, kWorkingDirectory, kExec, kAffinity, kPlacement };
  Step step = Step::kFork;
  int error_number = 0;
  std::string text;  ///< with kPlacement: instead of errno; with kWorkingDirectory: the folder

  /// There is no such file.
  bool is_not_found() const { return error_number == ENOENT || error_number == ENOTDIR; }
};

struct Exited {
  int wait_status = 0;          ///< as waitpid() gives it
  bool out_of_memory = false;   ///< killed by SIGKILL, not by us, while the kernel's out-of-memory killer was at work
  bool stopped_by_us = false;   ///< after the agent had begun to end the ranks
  std::int64_t input_read = 0;  ///< bytes of its standard input that it has read, if it had the launcher's
  std::int64_t max_rss_kib = 0;
  double cpu_seconds = 0;
};

/// Where a rank's program is.
struct StackTrace {
  std::string native;   ///< as eu-stack or gdb writes it
  std::string missing;  ///< why there is no stack in `native`, if there is none
  bool python = false;  ///< it prints a stack of its own on SIGABRT, to its standard error
};

struct Credit {
  std::int64_t bytes = 0;
};

struct Signal {
  int number = 0;
};

struct End {
  int signal = 15;
  std::int64_t grace_ms = 10'000;  ///< 0 = SIGKILL at once
  bool told = false;               ///< the launcher was asked to end; a batch system signals its ranks as well
};

/// A process that has not ended after the signal to end.
struct RemainingProcess {
  int number = -1;  ///< -1: a process that the job's processes have started
  std::int64_t pid = 0;
  std::string name;
};

/// The processes that a host waits for, and the time until it kills them.
struct Remaining {
  std::vector<RemainingProcess> processes;
  std::int64_t left_ms = 0;
};

struct RelayedRequest {
  std::int64_t id = 0;
  rendezvous::Request request;
};

struct RelayedReply {
  std::int64_t id = 0;
  rendezvous::Response response;
};

/// The two directions of a control message. The source of each message instantiates this: see control_message.hpp.
template <class Message>
struct ControlMessage {
  static std::string encode(const Message& message);
  static Message decode(std::string_view payload);
};

/// For each message of this header.
template <class Message>
std::string encode(const Message& message) {
  return ControlMessage<Message>::encode(message);
}
template <class Message>
Message decode(std::string_view payload) {
  return ControlMessage<Message>::decode(payload);
}

}  // namespace runjob
