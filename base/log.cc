#include "base/log.hpp"

#include <algorithm>
#include <cstdio>
#include <memory>
#include <mutex>
#include <utility>

#include <spdlog/pattern_formatter.h>
#include <spdlog/sinks/base_sink.h>
#include <spdlog/spdlog.h>

#include "base/error.hpp"
#include "base/screen_text.hpp"

namespace runjob::log {
namespace {

spdlog::level::level_enum to_spdlog(Level level) {
  switch (level) {
    case Level::kTrace:
      return spdlog::level::trace;
    case Level::kDebug:
      return spdlog::level::debug;
    case Level::kInfo:
      return spdlog::level::info;
    case Level::kWarn:
      return spdlog::level::warn;
    case Level::kError:
      return spdlog::level::err;
    case Level::kOff:
      return spdlog::level::off;
  }
  return spdlog::level::off;
}

/// "runjob: error: text": the word is what a user reads, and info lines carry none.
class LevelWord : public spdlog::custom_flag_formatter {
 public:
  void format(const spdlog::details::log_msg& message, const std::tm&, spdlog::memory_buf_t& out) override {
    const char* word = "";
    if (message.level == spdlog::level::err) word = "error: ";
    if (message.level == spdlog::level::warn) word = "warning: ";
    if (message.level == spdlog::level::debug) word = "debug: ";
    if (message.level == spdlog::level::trace) word = "trace: ";
    const std::string_view text(word);
    out.append(text.data(), text.data() + text.size());
  }
  std::unique_ptr<custom_flag_formatter> clone() const override { return std::make_unique<LevelWord>(); }
};

/// Standard error, or the writer that redirect() was given.
class LineSink : public spdlog::sinks::base_sink<std::mutex> {
 public:
  void redirect(std::function<void(std::string_view)> writer) { writer_ = std::move(writer); }

 private:
  void sink_it_(const spdlog::details::log_msg& message) override {
    spdlog::memory_buf_t line;
    formatter_->format(message, line);
    const std::string text = screen_text({line.data(), line.size()});
    if (writer_) return writer_(text);
    static_cast<void>(!std::fwrite(text.data(), 1, text.size(), stderr));
    static_cast<void>(std::fflush(stderr));
  }
  void flush_() override {}

  std::function<void(std::string_view)> writer_;
};

/// It is never destroyed, like the logger that writes to it.
const std::shared_ptr<LineSink>& line_sink() {
  static const auto& sink = *new std::shared_ptr<LineSink>(std::make_shared<LineSink>());
  return sink;
}

const char* pattern_of(Stamp stamp) {
  switch (stamp) {
    case Stamp::kNone:
      return "";
    case Stamp::kPlace:
      return "[%L %s:%#] ";
    case Stamp::kTimeAndPlace:
      return "[%Y-%m-%d %H:%M:%S.%f: %L %s:%#] ";
  }
  return "";
}

void set_format(spdlog::logger& logger, const std::string& origin, Stamp stamp) {
  std::string escaped;
  for (const char c : origin) escaped += c == '%' ? std::string("%%") : std::string(1, c);
  auto formatter = std::make_unique<spdlog::pattern_formatter>();
  formatter->add_flag<LevelWord>('*').set_pattern(std::string("runjob: ") + pattern_of(stamp) + "%*" + escaped + "%v");
  logger.set_formatter(std::move(formatter));
}

/// It is not spdlog's default logger and not in its registry, because the runtime is a guest in the user's process. It
/// is never destroyed, because a thread of the runtime may write a line while the process exits.
spdlog::logger& logger() {
  static spdlog::logger& instance = *[] {
    auto* made = new spdlog::logger("runjob", line_sink());
    made->set_level(spdlog::level::warn);
    set_format(*made, "", Stamp::kNone);
    return made;
  }();
  return instance;
}

}  // namespace

void configure(Level level, const std::string& origin, Stamp stamp) {
  shown_level.store(level, std::memory_order_relaxed);
  logger().set_level(to_spdlog(level));
  set_format(logger(), origin, stamp);
}

Level parse_level(std::string_view text, std::string_view what) {
  std::string word(text);
  std::transform(word.begin(), word.end(), word.begin(),
                 [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
  if (word == "TRACE") return Level::kTrace;
  if (word == "DEBUG") return Level::kDebug;
  if (word == "INFO") return Level::kInfo;
  if (word == "WARNING" || word == "WARN") return Level::kWarn;
  if (word == "ERROR" || word == "FATAL") return Level::kError;
  if (word == "OFF") return Level::kOff;
  throw Error(Errc::kUsage,
              fmt::format("{}: '{}' is not a log level: TRACE, DEBUG, INFO, WARNING, ERROR, FATAL or OFF", what, text));
}

void redirect(std::function<void(std::string_view line)> writer) {
  line_sink()->redirect(std::move(writer));
}

void write(Level level, std::string_view message, Place place) {
  const spdlog::source_loc source(place.file, place.line, /*funcname_in=*/"");
  logger().log(source, to_spdlog(level), spdlog::string_view_t(message.data(), message.size()));
}

}  // namespace runjob::log
