#pragma once

#include <string_view>

#include "hostfile/allocation.hpp"

namespace runjob {

/// True when `host` is this machine and needs no connection: localhost, 127.*, ::1, or `own_name` (the result of
/// gethostname()), with or without its domain, in any case. A user or a port asks for SSH, so a host with one of them
/// is not. Nothing is looked up: the same text always gives the same answer.
bool is_this_host(const Host& host, std::string_view own_name);

}  // namespace runjob
