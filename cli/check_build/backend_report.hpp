#pragma once

#include <string>
#include <vector>

#include "cli/check_build/run_program.hpp"

namespace runjob {

/// librunjob's information about one backend.
struct Backend {
  std::string name;  ///< such as "shm", "gloo", "nccl", "cuda"
  bool available = false;
  std::string version;
  std::string path;
  std::string reason;  ///< why it is not available
};

struct BackendReport {
  std::vector<Backend> backends;
  std::string problem;  ///< "" or why nothing is known: the probe is missing, crashed, hung, wrote nonsense

  /// True if the library has this backend and it is available.
  bool has(const std::string& name) const;
};

/// Reads the JSON document of runjob_backends_json() that runjob-probe wrote. Pure.
/// Errors  `problem`; nothing is thrown.
BackendReport read_backend_report(const ProgramResult& probe);

/// Runs runjob-probe, a program of its own because loading a backend's library may crash. Blocks for 10 s at most.
/// Errors  `problem`; nothing is thrown.
BackendReport probe_backends(const Environment& environment);

}  // namespace runjob
