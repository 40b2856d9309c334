#pragma once

#include <string>

namespace runjob {

/// The program runjob-agent, as it is copied to other hosts.
struct AgentFile {
  std::string path;
  std::string build_id;  ///< hexadecimal; the ELF note NT_GNU_BUILD_ID, which the linker makes from the contents
  std::string machine;   ///< output of `uname -m` on hosts that can run it
};

/// Describes the file. Reads only its headers.
/// Errors  Error(kUnavailable) naming the path.
AgentFile describe_agent(const std::string& path);

/// The contents of the file.
/// Errors  Error(kUnavailable).
std::string read_agent(const AgentFile& agent);

}  // namespace runjob
