#pragma once

#include <string>
#include <string_view>

namespace runjob {

/// The Horovod whose place we take, as scripts ask horovodrun for it.
inline constexpr std::string_view kHorovodVersion = "0.28.1";

/// The output of --version: "runjob 0.1.0", or as horovodrun "0.28.1".
std::string version_text(bool as_horovodrun = false);

}  // namespace runjob
