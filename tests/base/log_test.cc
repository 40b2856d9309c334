#include "base/log.hpp"

#include <string>
#include <sys/wait.h>
#include <unistd.h>

#include "base/error.hpp"
#include "base/unique_handle.hpp"
#include "tests/catch.hpp"

using namespace runjob;

namespace {

/// A value that writes a line when it is formatted.
struct Formatted {};

/// What `body` writes to standard error, run in a child so that the logger of this process stays as it is.
template <class Body>
std::string standard_error_of(Body body) {
  int ends[2];
  REQUIRE(::pipe(ends) == 0);
  UniqueFd reader(ends[0]);
  UniqueFd writer(ends[1]);
  const pid_t child = ::fork();
  if (child == 0) {
    ::dup2(writer.get(), STDERR_FILENO);
    body();
    ::_exit(0);
  }
  writer.reset();
  std::string text;
  char buffer[4096];
  for (ssize_t got; (got = ::read(reader.get(), buffer, sizeof buffer)) > 0;)
    text.append(buffer, static_cast<std::size_t>(got));
  REQUIRE(::waitpid(child, nullptr, 0) == child);
  return text;
}

}  // namespace

template <>
struct fmt::formatter<Formatted> : fmt::formatter<std::string_view> {
  auto format(const Formatted&, fmt::format_context& context) const {
    static_cast<void>(!::write(STDERR_FILENO, "formatted\n", 10));
    return fmt::formatter<std::string_view>::format("value", context);
  }
};

TEST_CASE("what a message quotes cannot steer the terminal", "[unit]") {
  CHECK(standard_error_of([] {
          log::error("s1: {}",
                     "\x1b]52;c;YQ==\a\x1b[2J\rrunjob: error: s2: forged\xc2\x9b"
                     "1A");
        }) == "runjob: error: s1: runjob: error: s2: forged1A\n");
}

TEST_CASE("a log line starts with runjob, its level and its origin", "[unit]") {
  const std::string text = standard_error_of([] {
    log::configure(log::Level::kInfo, "rank 3 on 100%s4: ");
    log::error("lost {}", 7);
    log::warn("careful");
    log::info("started");
    log::debug("not shown");
  });
  CHECK(text ==
        "runjob: error: rank 3 on 100%s4: lost 7\n"
        "runjob: warning: rank 3 on 100%s4: careful\n"
        "runjob: rank 3 on 100%s4: started\n");
}

TEST_CASE("with a stamp, a line has its time, the letter of its level, its file and its line", "[unit]") {
  const std::string text = standard_error_of([] {
    log::configure(log::Level::kTrace, "rank 3 on s4: ", log::Stamp::kTimeAndPlace);
    log::trace("each {}", "operation");
    log::configure(log::Level::kDebug, "", log::Stamp::kPlace);
    log::warn("careful");
  });
  CHECK_THAT(text, Catch::Matchers::Matches(
                       "runjob: \\[\\d{4}-\\d\\d-\\d\\d \\d\\d:\\d\\d:\\d\\d\\.\\d{6}: T log_test\\.cc:\\d+\\] "
                       "trace: rank 3 on s4: each operation\n"
                       "runjob: \\[W log_test\\.cc:\\d+\\] warning: careful\n"));
}

TEST_CASE("a line that is not shown is not formatted", "[unit]") {
  const std::string text = standard_error_of([] {
    log::configure(log::Level::kInfo, "");
    log::debug("{}", Formatted{});
    log::info("{}", Formatted{});
  });
  CHECK(text == "formatted\nrunjob: value\n");
}

TEST_CASE("parse_level knows Horovod's levels and refuses others by name", "[unit]") {
  CHECK(log::parse_level("warning", "v") == log::Level::kWarn);
  CHECK(log::parse_level("FATAL", "v") == log::Level::kError);
  CHECK(log::parse_level("Trace", "v") == log::Level::kTrace);
  CHECK_THROWS_WITH(log::parse_level("loud", "--log-level"),
                    "--log-level: 'loud' is not a log level: TRACE, DEBUG, INFO, WARNING, ERROR, FATAL or OFF");
}
