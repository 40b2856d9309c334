#include "cli/call_descriptors.hpp"

#include <string>

#include "base/error.hpp"
#include "base/parse.hpp"

namespace runjob {

std::optional<CallDescriptors> call_descriptors(const CommandLine& line, const JobSpec& spec) {
  constexpr int kFirst = 3, kMost = 1 << 20;
  const auto given = line.settings.find("serve-call");
  if (given == line.settings.end()) return std::nullopt;
  if (spec.slurm_task)
    throw Error(
        Errc::kUsage,
        "runjob.run() starts ranks of its own, and srun has started this process as one of several; call it in the "
        "batch script's process, without srun, or name the hosts");
  const std::string& text = given->second.values.back();
  const std::size_t comma = text.find(',');
  if (comma == std::string::npos) throw Error(Errc::kUsage, "--serve-call: expected two descriptors, as in 3,4");
  const auto number = [](const std::string& word) {
    return static_cast<int>(parse_integer(word, "--serve-call", kFirst, kMost));
  };
  return CallDescriptors{number(text.substr(0, comma)), number(text.substr(comma + 1))};
}

}  // namespace runjob
