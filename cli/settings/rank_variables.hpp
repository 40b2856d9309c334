#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/environment.hpp"

namespace runjob {

/// The variables that an option of the launcher exports to every rank. `option`: as messages name it, "-x".
struct ExportedVariables {
  std::string option;
  Environment variables;
};

/// Checks a value of --torch-backend. Errors  kUsage naming `place` and the accepted words.
void check_torch_backend(std::string_view text, std::string_view place);

/// Checks a value of --bucket-mb. Errors  kUsage naming `place` and the remedy.
void check_bucket_mebibytes(std::string_view text, std::string_view place);

/// Checks the variables that the ranks' runtime reads and that no option gives, so that a wrong value is one error here
/// and not one of each rank. `environment`: the launcher's. `exported`: they win, the first ones over all others.
/// `given`: the variables that options give, without their prefix, which win over the launcher's.
/// Errors  kUsage naming the variable, its value and the accepted form.
void check_rank_variables(const Environment& environment, const std::vector<ExportedVariables>& exported,
                          const std::map<std::string, std::string>& given);

}  // namespace runjob
