#pragma once

#include <cstdint>

#include "launcher/channel/messages.hpp"

namespace runjob {

/// kSome if the job has other hosts, or the user chooses among networks: then the launcher needs the networks of this
/// host.
enum class Neighbours { kNone, kSome };

/// Describes this host for the agent's first frame. Finds a free port by binding to it.
Hello host_facts(Neighbours neighbours);

/// The number of processes that the kernel's out-of-memory killer has ended since this host started; 0 if unknown.
/// Source  proc(5), /proc/vmstat, oom_kill (Linux 4.13).
std::int64_t oom_kills();

}  // namespace runjob
