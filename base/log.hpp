#pragma once

#include <atomic>
#include <functional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include <fmt/format.h>

/// The one logger, named `runjob`, writing lines to standard error. Workers' output is data and never passes
/// here. Threads: any. A message may quote another host: each line passes screen_text() and cannot steer a terminal.
///
/// Levels  error: the job failed; warn: it works but not as asked; info: a few lines per job and rank; debug: the
///         decisions of the runtime; trace: each operation.
/// Cost    a line that is not shown costs one load of the level; its text is not formatted.
namespace runjob::log {

enum class Level { kTrace, kDebug, kInfo, kWarn, kError, kOff };

/// The parts of the brackets before a line's text: "[time: L file:line]", as in Horovod's lines. L is the first letter
/// of the level.
enum class Stamp { kNone, kPlace, kTimeAndPlace };

/// Sets the level and the text that starts each line after "runjob: ", for instance "rank 3 on s4: ".
/// Called once, in main() or init(); before that the level is kWarn and the text is empty.
void configure(Level level, const std::string& origin, Stamp stamp = Stamp::kNone);

/// TRACE, DEBUG, INFO, WARNING (or WARN), ERROR, FATAL, OFF in any case; throws Error(kUsage) naming `what`.
Level parse_level(std::string_view text, std::string_view what);

/// Gives each line, with its newline, to `writer` instead of standard error; an empty `writer` undoes it. A program
/// that draws on a terminal needs this. No other thread may log during the call.
void redirect(std::function<void(std::string_view line)> writer);

/// The level that configure() has set. Written by configure() only.
inline std::atomic<Level> shown_level{Level::kWarn};

inline bool enabled(Level level) {
  return level >= shown_level.load(std::memory_order_relaxed);
}
/// A place in the sources. std::source_location, which clang 14 does not have.
struct Place {
  const char* file;
  int line;
};
void write(Level level, std::string_view message, Place place);

/// A format string, and the place of the call that it belongs to.
template <class... Args>
struct Format {
  template <class Text>
  consteval Format(const Text& format, const char* file = __builtin_FILE(), int line = __builtin_LINE())
      : text(format), place{file, line} {}
  fmt::format_string<Args...> text;
  Place place;
};

template <class... Args>
void write_if_shown(Level level, const Format<Args...>& format, Args&&... args) {
  if (enabled(level)) write(level, fmt::format(format.text, std::forward<Args>(args)...), format.place);
}
template <class... Args>
void error(Format<std::type_identity_t<Args>...> format, Args&&... args) {
  write_if_shown<Args...>(Level::kError, format, std::forward<Args>(args)...);
}
template <class... Args>
void warn(Format<std::type_identity_t<Args>...> format, Args&&... args) {
  write_if_shown<Args...>(Level::kWarn, format, std::forward<Args>(args)...);
}
template <class... Args>
void info(Format<std::type_identity_t<Args>...> format, Args&&... args) {
  write_if_shown<Args...>(Level::kInfo, format, std::forward<Args>(args)...);
}
template <class... Args>
void debug(Format<std::type_identity_t<Args>...> format, Args&&... args) {
  write_if_shown<Args...>(Level::kDebug, format, std::forward<Args>(args)...);
}
template <class... Args>
void trace(Format<std::type_identity_t<Args>...> format, Args&&... args) {
  write_if_shown<Args...>(Level::kTrace, format, std::forward<Args>(args)...);
}

}  // namespace runjob::log
