#pragma once

#include <string>

#include "cli/check_build/backend_report.hpp"
#include "cli/check_build/framework_report.hpp"

namespace runjob {

/// The output of --check-build. It begins with horovodrun's layout, equal to the byte (including its four blanks after
/// the last Gloo), with runjob's title or, as horovodrun, with Horovod's. Then it lists the version and path of every
/// framework and backend, or why it is absent. A framework is checked off if it and runjob's binding for it are
/// installed.
std::string check_build_text(const BackendReport& backends, const FrameworkReport& frameworks,
                             bool as_horovodrun = false);

/// Asks librunjob and Python, and returns check_build_text(). Never throws for what they answer.
std::string check_build(const Environment& environment, bool as_horovodrun);

}  // namespace runjob
