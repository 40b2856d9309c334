#pragma once

#include <string>

namespace runjob {

/// The path of our helper program `name` (runjob-agent, runjob-probe): beside this program in a build tree, in
/// ../libexec/runjob in an installation. PATH is not searched, because it may have a helper of another version. Errors
/// Error(kUnavailable) naming both places.
std::string program_path(const std::string& name);

/// The same for a program of ours that lies in `directory`.
std::string program_path(const std::string& name, const std::string& directory);

}  // namespace runjob
