#include "cli/command.hpp"

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <exception>
#include <filesystem>
#include <signal.h>
#include <string>
#include <unistd.h>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/descriptors.hpp"
#include "base/environment.hpp"
#include "base/error.hpp"
#include "base/log.hpp"
#include "base/program_path.hpp"
#include "base/screen_text.hpp"
#include "cli/resize_job.hpp"
#include "cli/run_command_line.hpp"
#include "launcher/binding/gpu_devices.hpp"

namespace runjob {
namespace {

constexpr int kUsageStatus = 2;  // docs/exit-status.md
constexpr int kOwnFailureStatus = 125;

/// `name`: argv[0].
Surroundings look_around(const std::string& name) {
  std::array<char, 256> host_name{};
  ::gethostname(host_name.data(), host_name.size() - 1);
  std::error_code deleted;
  Environment environment = current_environment();
  const int gpus = static_cast<int>(usable_gpus(environment).size());
  return {std::move(environment),
          std::filesystem::current_path(deleted).string(),
          host_name.data(),
          std::filesystem::path(name).filename() == "horovodrun",
          {},
          gpus};
}

void print(const std::string& text) {
  if (std::fwrite(text.data(), 1, text.size(), stdout) != text.size() || std::fflush(stdout) != 0)
    throw system_error("cannot write to standard output", errno);
}

/// Replaces this process by `program` of ours, with the same arguments.
[[noreturn]] void become(const std::string& program, char** argv) {
  const std::string path = program_path(program);
  ::execv(path.c_str(), argv);
  throw Error(Errc::kUnavailable, fmt::format("cannot start {}: {}; install runjob again", path, std::strerror(errno)));
}

int report(const std::exception& error, int status) {
  log::error("{}", one_line(error.what()));
  return status;
}

}  // namespace

int run_command(int argc, char** argv, const JobActions& actions) {
  open_standard_descriptors();
  // A file that may not grow is an error of the write. Ranks get the default again.
  ::signal(SIGXFSZ, SIG_IGN);
  // Whoever starts runjob may have blocked signals. The end of a process and Ctrl-C must be noticed all the same.
  sigset_t none;
  ::sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  Warnings warnings;  // these two until it is known that this program is the one that goes on
  std::string map;
  const auto show_warnings = [&] {
    for (const std::string& text : std::exchange(warnings, {})) log::warn("{}", one_line(text));
    static_cast<void>(!std::fwrite(map.data(), 1, map.size(), stderr));
    map.clear();
  };
  const auto remember = [&warnings](const std::string& text) { warnings.push_back(text); };
  const auto run_here = [&](const JobSpec& spec, const std::function<int(const JobSpec&)>& action) {
    if (spec.verbose) log::configure(log::Level::kInfo, "");
    if (!actions.runs_here(spec)) become(actions.other_program, argv);
    show_warnings();
    return action(spec);
  };
  try {
    const std::vector<std::string> arguments(argv + (argc > 0 ? 1 : 0), argv + argc);
    if (!arguments.empty() && arguments.front() == "resize") return resize_job(arguments, print);
    Surroundings surroundings = look_around(argc > 0 ? argv[0] : "");
    surroundings.discover = [&](const FirstHosts& wanted, const Environment& environment) -> std::vector<Host> {
      if (!actions.discover) become(actions.other_program, argv);
      return actions.discover(wanted, environment);
    };
    const int status =
        run_command_line(arguments, surroundings,
                         {print, remember, [&](const JobSpec& spec) { return run_here(spec, actions.run); },
                          [&](const JobSpec& spec) { return run_here(spec, actions.clean_cache); },
                          [&map](const std::string& text) { map += text; }});
    show_warnings();
    return status;
  } catch (const Error& error) {
    const bool is_users_mistake = error.code() == Errc::kUsage || error.code() == Errc::kHostfile;
    return report(error, is_users_mistake ? kUsageStatus : kOwnFailureStatus);
  } catch (const std::exception& error) {
    return report(error, kOwnFailureStatus);
  }
}

}  // namespace runjob
