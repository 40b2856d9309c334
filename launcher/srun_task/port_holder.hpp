#pragma once

#include <optional>
#include <sys/types.h>

namespace runjob {

/// The user whose program listens on this TCP port of this host; nothing if the kernel names none.
/// Source  Linux, Documentation/networking/proc_net_tcp.rst.
std::optional<uid_t> port_holder(int port);

}  // namespace runjob
