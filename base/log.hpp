#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <utility>

#include <fmt/format.h>

/// The one logger, named `runjob`, writing lines to standard error. Workers' output is data and never passes
/// here. Threads: any. error = the job failed; warn = it works but not as asked; info = a few lines per job;
/// debug and trace = for us.
namespace runjob::log {

enum class Level { kTrace, kDebug, kInfo, kWarn, kError, kOff };

/// Sets the level and the text that starts each line after "runjob: ", for instance "rank 3 on s4: ".
/// Called once, in main() or init(); before that the level is kWarn and the text is empty.
void configure(Level level, const std::string& origin);

/// TRACE, DEBUG, INFO, WARNING (or WARN), ERROR, FATAL, OFF in any case; throws Error(kUsage) naming `what`.
Level parse_level(std::string_view text, std::string_view what);

/// Gives each line, with its newline, to `writer` instead of standard error; an empty one undoes it. For a program that
/// draws on a terminal. Called when no other thread logs.
void redirect(std::function<void(std::string_view line)> writer);

bool enabled(Level level);
void write(Level level, std::string_view message);

template <class... Args>
void error(fmt::format_string<Args...> format, Args&&... args) {
  write(Level::kError, fmt::format(format, std::forward<Args>(args)...));
}
template <class... Args>
void warn(fmt::format_string<Args...> format, Args&&... args) {
  if (enabled(Level::kWarn)) write(Level::kWarn, fmt::format(format, std::forward<Args>(args)...));
}
template <class... Args>
void info(fmt::format_string<Args...> format, Args&&... args) {
  if (enabled(Level::kInfo)) write(Level::kInfo, fmt::format(format, std::forward<Args>(args)...));
}
template <class... Args>
void debug(fmt::format_string<Args...> format, Args&&... args) {
  if (enabled(Level::kDebug)) write(Level::kDebug, fmt::format(format, std::forward<Args>(args)...));
}

}  // namespace runjob::log
