#pragma once

#include <string>
#include <string_view>

namespace runjob {

/// The version of Horovod that runjob replaces. Scripts ask horovodrun for it.
inline constexpr std::string_view kHorovodVersion = "0.28.1";

/// The output of --version, one line with its end: "runjob 0.1.0", or as horovodrun kHorovodVersion alone. Pure.
std::string version_text(bool as_horovodrun = false);

}  // namespace runjob
