#include "cli/run_command_line.hpp"

#include <fmt/format.h>

#include "base/error.hpp"
#include "cli/call_descriptors.hpp"
#include "cli/check_build/check_build.hpp"
#include "cli/check_build/version.hpp"
#include "cli/options/command_line.hpp"
#include "cli/options/help.hpp"
#include "cli/settings/gather_settings.hpp"
#include "cli/settings/print_config.hpp"
#include "launcher/job_spec/horovod_words.hpp"
#include "launcher/job_spec/job_map.hpp"

namespace runjob {
namespace {

void check_command(const std::vector<std::string>& command) {
  if (command.empty())
    throw Error(Errc::kUsage, "there is no command to run; write it after the options: runjob -np 2 python train.py");
  if (command.front().empty())
    throw Error(Errc::kUsage, "the command is an empty word; write a program: runjob -np 2 python train.py");
  const std::string& program = command.front();
  if (program.size() > 1 && program.front() == ':' && program.find_first_not_of("0123456789", 1) == program.npos)
    throw Error(Errc::kUsage,
                fmt::format("the command is '{0}': write the slots after the host without a blank, as in -H s1{0}; the "
                            "output of `hostname -I` ends with one",
                            program));
}

bool is_tag_style(const std::string& word) {
  try {
    parse_tag_style(word, "");
    return true;
  } catch (const Error&) {
    return false;
  }
}

/// `--tag-output time python a.py` runs `time`, which the user hardly meant.
void warn_of_parts(const CommandLine& line, const Effects& effects) {
  if (line.without_value.empty() || !is_tag_style(line.command.front())) return;
  effects.warn(
      fmt::format("the command is '{0}', because {1} takes its parts after '=': write {1}={0} for the parts, or -- "
                  "before the command",
                  line.command.front(), line.without_value));
}

}  // namespace

int run_command_line(const std::vector<std::string>& arguments, const Surroundings& surroundings,
                     const Effects& effects) {
  const CommandLine line = parse_command_line(arguments, surroundings.as_horovodrun);
  const auto print = [&](const std::string& text) {
    effects.print(text);
    return 0;
  };
  if (line.has("help")) return print(help_text());
  if (line.has("version")) return print(version_text(surroundings.as_horovodrun));
  if (line.has("check-build")) return print(check_build(surroundings.environment, surroundings.as_horovodrun));
  Warnings warnings;
  const Settings settings = gather_settings(line, surroundings.environment, warnings);
  JobSpec spec = build_job_spec(settings, surroundings, warnings);
  for (const std::string& warning : warnings) effects.warn(warning);
  if (line.has("print-config")) return print(config_text(settings));
  if (line.has("clean-cache")) return effects.clean_cache(spec);
  check_command(line.command);
  warn_of_parts(line, effects);
  spec.command = line.command;
  spec.call = call_descriptors(line, spec);
  if (surroundings.as_horovodrun) spec.failure_lead = kHorovodFailureWords;
  if (line.has("dry-run")) return print(job_plan(spec));
  if (spec.display_map && !spec.slurm_task) effects.tell(job_map(spec));
  return effects.run_job(spec);
}

}  // namespace runjob
