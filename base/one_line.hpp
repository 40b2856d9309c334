#pragma once

#include <string>
#include <string_view>

namespace runjob {

/// `text` with its control characters written as \n, \t or \xNN, so that a message with the user's bytes in it
/// stays one line and cannot steer a terminal.
std::string one_line(std::string_view text);

}  // namespace runjob
