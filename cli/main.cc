#include <array>
#include <cerrno>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <string>
#include <unistd.h>
#include <vector>

#include "base/environment.hpp"
#include "base/error.hpp"
#include "base/log.hpp"
#include "base/one_line.hpp"
#include "base/standard_descriptors.hpp"
#include "cli/run_command_line.hpp"
#include "launcher/clean_cache.hpp"
#include "launcher/run_job.hpp"

namespace {

using namespace runjob;

constexpr int kUsageStatus = 2;  // docs/exit-status.md
constexpr int kOwnFailureStatus = 125;

Surroundings look_around() {
  std::array<char, 256> host_name{};
  ::gethostname(host_name.data(), host_name.size() - 1);
  return {current_environment(), std::filesystem::current_path().string(), host_name.data()};
}

void print(const std::string& text) {
  if (std::fwrite(text.data(), 1, text.size(), stdout) != text.size() || std::fflush(stdout) != 0)
    throw system_error("cannot write to standard output", errno);
}

void tell(const std::string& text) {
  static_cast<void>(!std::fwrite(text.data(), 1, text.size(), stderr));
}

int start(const JobSpec& spec) {
  if (spec.verbose) log::configure(log::Level::kInfo, "");
  return run_job(spec);
}

int clean(const JobSpec& spec) {
  if (spec.verbose) log::configure(log::Level::kInfo, "");
  return clean_cache(spec);
}

int report(const std::exception& error, int status) {
  log::error("{}", one_line(error.what()));
  return status;
}

}  // namespace

int main(int argc, char** argv) {
  open_standard_descriptors();
  try {
    return run_command_line(
        std::vector<std::string>(argv + (argc > 0 ? 1 : 0), argv + argc), look_around(),
        {print, [](const std::string& text) { log::warn("{}", one_line(text)); }, start, clean, tell});
  } catch (const Error& error) {
    const bool is_users_mistake = error.code() == Errc::kUsage || error.code() == Errc::kHostfile;
    return report(error, is_users_mistake ? kUsageStatus : kOwnFailureStatus);
  } catch (const std::exception& error) {
    return report(error, kOwnFailureStatus);
  }
}
