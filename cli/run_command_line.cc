#include "cli/run_command_line.hpp"

#include "base/error.hpp"
#include "cli/call_descriptors.hpp"
#include "cli/check_build.hpp"
#include "cli/command_line.hpp"
#include "cli/gather_settings.hpp"
#include "cli/help.hpp"
#include "cli/print_config.hpp"
#include "cli/version.hpp"
#include "launcher/job_map.hpp"

namespace runjob {
namespace {

void check_command(const std::vector<std::string>& command) {
  if (command.empty())
    throw Error(Errc::kUsage, "there is no command to run; write it after the options: runjob -np 2 python train.py");
  if (command.front().empty())
    throw Error(Errc::kUsage, "the command is an empty word; write a program: runjob -np 2 python train.py");
}

}  // namespace

int run_command_line(const std::vector<std::string>& arguments, const Surroundings& surroundings,
                     const Effects& effects) {
  const CommandLine line = parse_command_line(arguments);
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
  spec.command = line.command;
  spec.call = call_descriptors(line, spec);
  spec.says_as_horovodrun = surroundings.as_horovodrun;
  if (line.has("dry-run")) return print(job_plan(spec));
  if (spec.display_map && !spec.slurm_task) effects.tell(job_map(spec));
  return effects.run_job(spec);
}

}  // namespace runjob
