#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace runjob {

/// The options of PyTorch's torchrun, spelled with '_' as well as with '-'. runjob has none of them; errors use the
/// list.
std::vector<std::string> torchrun_spellings();

/// A hint for somebody who writes `typed`, an option of torchrun or the beginning of one: what to write for runjob. ""
/// if it is none of them.
std::string torchrun_hint(std::string_view typed);

}  // namespace runjob
