#pragma once

#include <string>

namespace runjob::runtime {

/// The network interface of this host that has the local address of a connected socket, "eth0"; empty when none has it.
std::string local_interface(int socket);

}  // namespace runjob::runtime
