/// Feeds any lines to the readers of what srun writes to its standard error, which has words of agents in it.
#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "launcher/slurm/srun_command.hpp"
#include "tests/fuzz.hpp"

using namespace runjob;

void fuzz(std::string_view text) {
  std::vector<std::string> lines;
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(text.size(), line.size() + 1));
    const std::vector<std::string> ended = nodes_that_ended(line), named = nodes_named(line);
    require(ended.empty() || named == ended);
    if (!is_noise(line)) lines.emplace_back(line);
  }
  require(!explain_srun(lines, "/usr/bin/runjob-agent").empty());
}
