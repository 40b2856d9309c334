#pragma once

#include <string>

#include "cli/backend_report.hpp"
#include "cli/framework_report.hpp"

namespace runjob {

/// What --check-build prints: horovodrun's layout to the byte (its four blanks after the last Gloo included)
/// with our title or, as horovodrun, with Horovod's, then for every framework and backend its version and path or why it is absent. A framework
/// is checked off when it and our binding for it are installed.
std::string check_build_text(const BackendReport& backends, const FrameworkReport& frameworks,
                             bool as_horovodrun = false);

/// Asks librunjob and Python, and returns check_build_text(). Never throws for what they answer.
std::string check_build(const Environment& environment, bool as_horovodrun);

}  // namespace runjob
