#pragma once

#include <cstdint>
#include <sys/resource.h>

#include "launcher/channel/messages.hpp"

namespace runjob {

/// Makes the report to the launcher on a rank that has ended.
/// wait_status, usage  as wait4(2) gives them.
/// stopped_by_us       runjob had begun to end the ranks of this host.
/// oom_kills_before    oom_kills() soon after the ranks were started.
Exited exited_of(int wait_status, const rusage& usage, bool stopped_by_us, std::int64_t oom_kills_before);

}  // namespace runjob
