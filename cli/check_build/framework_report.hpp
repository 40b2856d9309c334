#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "cli/check_build/run_program.hpp"

namespace runjob {

/// One framework as the user's Python has it.
struct Framework {
  std::string_view title;    ///< "PyTorch"
  std::string_view module;   ///< name of runjob's Python package for it: "torch" for runjob.torch
  std::string version;       ///< "" = not installed
  bool has_binding = false;  ///< runjob.MODULE is installed there too

  bool usable() const { return !version.empty() && has_binding; }
};

struct FrameworkReport {
  std::vector<Framework> frameworks;  ///< TensorFlow, PyTorch, MXNet, Keras, JAX: always all five
  std::string python;                 ///< "/usr/bin/python3 (3.11.2)", "" when there is none
  std::string package;                ///< where our Python package is, "" when it is not installed there
  std::string problem;                ///< "" or why nothing is known
};

/// Reads what the Python program of ask_python() printed. Never throws.
FrameworkReport read_framework_report(const ProgramResult& python);

/// Asks the first of python3 and python on PATH for its packages' metadata; no framework is imported. Never
/// throws.
FrameworkReport ask_python(const Environment& environment);

}  // namespace runjob
