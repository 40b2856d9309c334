#pragma once

#include <string>

namespace runjob {

/// Where our helper program `name` (runjob-agent, runjob-probe) is: beside this program (the build tree),
/// else in ../libexec/runjob (installed). Never looked up on PATH: a helper of another version must not be
/// taken. Errors  Error(kUnavailable) naming both places.
std::string program_path(const std::string& name);

/// The same for a program of ours that lies in `directory`.
std::string program_path(const std::string& name, const std::string& directory);

}  // namespace runjob
