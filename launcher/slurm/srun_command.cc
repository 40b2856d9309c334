#include "launcher/slurm/srun_command.hpp"

#include <algorithm>
#include <array>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/error.hpp"
#include "hostfile/slurm_hostlist.hpp"
#include "launcher/processes/rank_environment.hpp"

namespace runjob {
namespace {

/// The variables of SLURM that describe the job's place; the others stand for options.
bool belongs_to_job(std::string_view name) {
  constexpr std::array<std::string_view, 4> kPrefixes = {"SLURM_JOB_", "SLURM_CONF", "SLURM_CLUSTER", "SLURM_SUBMIT_"};
  constexpr std::array<std::string_view, 3> kNames = {"SLURM_JOBID", "SLURM_WORKING_CLUSTER", "SLURM_JWT"};
  constexpr std::array<std::string_view, 2> kOptions = {"SLURM_JOB_NAME", "SLURM_JOB_NUM_NODES"};
  const auto begins = [name](std::string_view prefix) { return name.starts_with(prefix); };
  if (std::find(kOptions.begin(), kOptions.end(), name) != kOptions.end()) return false;
  return std::any_of(kPrefixes.begin(), kPrefixes.end(), begins) ||
         std::find(kNames.begin(), kNames.end(), name) != kNames.end();
}

/// An agent's own message, which becomes part of one of ours.
std::string without_prefix(std::string_view line) {
  constexpr std::string_view kAgents = "runjob: error: agent: ";
  if (line.starts_with(kAgents)) line.remove_prefix(kAgents.size());
  return std::string(line);
}

}  // namespace

std::vector<std::string> srun_command(const std::vector<std::string>& nodes, bool whole_allocation,
                                      const std::string& agent) {
  const std::string count = std::to_string(nodes.size());
  std::vector<std::string> words = {"srun",
                                    "--nodes=" + count,
                                    "--ntasks=" + count,
                                    "--ntasks-per-node=1",
                                    "--mem=0",               // all of the job's
                                    "--cpu-bind=none",       // the ranks share the CPUs among themselves
                                    "--mpi=none",            // the agent is no MPI program
                                    "--input=all",           // each agent reads the call
                                    "--kill-on-bad-exit=0",  // runjob itself handles the end of one agent
                                    "--no-kill",
                                    "--wait=0",
                                    "--export=ALL",
                                    "--chdir=/",  // the ranks' directory is looked for by the agents, with an error
                                    "--job-name=runjob",
                                    "--quiet"};
  if (!whole_allocation) words.push_back(fmt::format("--nodelist={}", fmt::join(nodes, ",")));
  words.insert(words.end(), {agent, "--called"});
  return words;
}

Environment srun_environment(const Environment& own) {
  Environment result;
  for (const auto& [name, value] : forwarded_environment(own)) {
    const bool of_slurm = name.starts_with("SLURM") || name.starts_with("SRUN_");
    if (!of_slurm || belongs_to_job(name)) result.emplace(name, value);
  }
  for (const char* name :
       {"HOME", "USER", "LOGNAME", "SHELL"}) {  // the same on every node, and SLURM sets none of them
    const auto found = own.find(name);
    if (found != own.end()) result.insert(*found);
  }
  // These are variables and not options, because versions that do not know them ignore them. The step may run beside
  // the step of this process, and gets all CPUs of the job on each node instead of one for each task.
  result["SLURM_OVERLAP"] = "1";
  result["SLURM_WHOLE"] = "1";
  return result;
}

std::string gpu_warning(const Environment& own) {
  const char* option = nullptr;
  if (own.count("SLURM_GPUS") != 0) option = "--gpus";
  if (own.count("SLURM_GPUS_PER_TASK") != 0) option = "--gpus-per-task";
  if (option == nullptr) return "";
  return fmt::format(
      "the GPUs of this job were asked for with {}; for runjob's one task on each node SLURM may hold some of them "
      "back; "
      "ask with --gpus-per-node or --gres",
      option);
}

std::vector<std::string> nodes_that_ended(std::string_view line) {
  constexpr std::string_view kBegin = "srun: error: ";
  if (!line.starts_with(kBegin)) return {};
  const std::string_view rest = line.substr(kBegin.size());
  const std::size_t end = rest.find(": task");
  if (end == std::string_view::npos) return {};
  try {
    return parse_slurm_hostlist(rest.substr(0, end), "srun");
  } catch (const Error&) {
    return {};
  }
}

std::vector<std::string> nodes_named(std::string_view line) {
  constexpr std::string_view kFailure = "srun: error: Node failure on ";
  if (line.starts_with(kFailure)) return {std::string(line.substr(kFailure.size()))};
  return nodes_that_ended(line);
}

bool is_noise(std::string_view line) {
  return line.empty() || line.find("lacks support for cpu binding") != std::string_view::npos ||
         line.find("step creation temporarily disabled, retrying") != std::string_view::npos ||
         line.find("Step created for") != std::string_view::npos;
}

std::string explain_srun(const std::vector<std::string>& lines, const std::string& agent) {
  constexpr std::size_t kShown = 3;
  std::vector<std::string> reasons, ends;
  for (const std::string& line : lines) {
    auto& kind = nodes_that_ended(line).empty() ? reasons : ends;
    const std::string text = without_prefix(line);
    if (!text.empty() && std::find(kind.begin(), kind.end(), text) == kind.end()) kind.push_back(text);
  }
  if (reasons.empty() && ends.empty()) return "srun printed no reason";
  const std::vector<std::string>& shown = reasons.empty() ? ends : reasons;
  const std::size_t first = shown.size() > kShown ? shown.size() - kShown : 0;
  std::string text = fmt::format("{}", fmt::join(shown.begin() + static_cast<long>(first), shown.end(), "; "));
  if (text.find("execve()") != std::string::npos)
    text += fmt::format("; runjob must be at the same path on every node ({}), on a shared file system for instance",
                        agent);
  return text;
}

}  // namespace runjob
