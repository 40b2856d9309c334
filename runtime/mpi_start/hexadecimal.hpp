#pragma once

#include <string>
#include <string_view>

namespace runjob::runtime {

/// Two lower-case digits for each byte, for stores that accept text only.
std::string to_hexadecimal(std::string_view bytes);
/// The inverse of to_hexadecimal().
/// Errors  Error(kProtocol).
std::string from_hexadecimal(std::string_view text);

}  // namespace runjob::runtime
