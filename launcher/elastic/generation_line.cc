#include "launcher/elastic/generation_line.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/screen_text.hpp"

namespace runjob {
namespace {

constexpr std::size_t kMostNamed = 4;  // a line that can still be read

/// "s2, s3 for 20 s and 3 other hosts"
std::string hosts_text(std::vector<std::string> names) {
  const std::size_t others = names.size() > kMostNamed ? names.size() - kMostNamed : 0;
  names.resize(names.size() - others);
  const std::string named = fmt::format("{}", fmt::join(names, ", "));
  return others == 0 ? named : fmt::format("{} and {}", named, counted(static_cast<int>(others), "other host"));
}

}  // namespace

std::string change_text(const std::vector<std::string>& left, const std::vector<std::string>& came) {
  std::vector<std::string> parts;
  const auto add = [&parts](const std::vector<std::string>& names, const char* what) {
    if (names.size() > kMostNamed) return parts.push_back(fmt::format("{} ranks have {}", names.size(), what));
    for (const std::string& name : names) parts.push_back(fmt::format("{} has {}", name, what));
  };
  add(left, "left");
  add(came, "come");
  return parts.empty() ? kHostsChanged : fmt::format("{}: {}", kHostsChanged, fmt::join(parts, ", "));
}

std::string generation_line(const NewGeneration& generation) {
  const std::string& reason = generation.reason;
  return fmt::format(
      "{}{} The job goes on with {} (generation {}), which stood still for {:.2f} s{}.", reason,
      reason.ends_with('.') ? "" : ".", counted(generation.ranks, "rank"), generation.number,
      std::chrono::duration<double>(generation.stood_still).count(),
      generation.excluded.empty() ? "" : "; no new process starts on " + hosts_text(generation.excluded));
}

}  // namespace runjob
