#pragma once

#include <string>
#include <string_view>

namespace runjob::runtime {

/// Two lower-case digits for each byte: for stores that take text only.
std::string to_hexadecimal(std::string_view bytes);
/// Errors  Error(kProtocol).
std::string from_hexadecimal(std::string_view text);

}  // namespace runjob::runtime
