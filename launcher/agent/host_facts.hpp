#pragma once

#include <cstdint>

#include "launcher/messages.hpp"

namespace runjob {

/// Whether other hosts are part of the job, or the user chooses among networks: then the launcher wants to know this one's.
enum class Neighbours { kNone, kSome };

/// What this host is, for the agent's first frame. Looks for a free port by binding to it.
Hello host_facts(Neighbours neighbours);

/// How often the kernel's out-of-memory killer has struck on this host since it started; 0 when unknown.
/// Source  proc(5), /proc/vmstat, oom_kill (Linux 4.13).
std::int64_t oom_kills();

}  // namespace runjob
