#pragma once

#include <functional>
#include <string_view>

namespace runjob {

/// Receives one line, without its end, that a remote command, or the program that carries its channel, has written to
/// standard error. Called from the loop.
using RemoteMessage = std::function<void(std::string_view line)>;

}  // namespace runjob
