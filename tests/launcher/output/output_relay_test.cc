#include "launcher/output/output_relay.hpp"

#include <csignal>
#include <filesystem>
#include <fstream>
#include <optional>
#include <sstream>

#include <boost/asio/io_context.hpp>
#include <fmt/format.h>

#include "base/error.hpp"
#include "base/log.hpp"
#include "tests/catch.hpp"
#include "tests/launcher/redirected_output.hpp"

using namespace runjob;

namespace {

constexpr std::int64_t kWindow = 4096;

/// For tests that fill a pipe.
void widen(OutputRelay::Options& options) {
  options.window = 4'000'000;
}

/// A relay of two ranks whose standard output is a pipe that the test reads, and whose standard error is a file, or goes
/// to the pipe too.
class Relay {
 public:
  explicit Relay(
      const std::function<void(OutputRelay::Options&)>& change = [](OutputRelay::Options&) {},
      bool errors_too = false) {
    ::signal(SIGPIPE, SIG_IGN);
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC | O_NONBLOCK) != 0) throw std::runtime_error("no pipe");
    reader.reset(ends[0]);
    const UniqueFd writer(ends[1]);
    output_.emplace(STDOUT_FILENO, writer.get());
    error_.emplace(STDERR_FILENO, errors_too ? writer.get() : errors.get());
    OutputRelay::Options options;
    options.ranks = {{"s1"}, {"s2"}};
    options.window = kWindow;
    change(options);
    relay.emplace(context.get_executor(), options, [this](int rank, Stream stream, std::int64_t bytes) {
      credits += fmt::format("{}:{}:{} ", rank, static_cast<int>(stream), bytes);
    });
    relay->on_progress = [this] { ++progress; };
  }

  void output(int rank, std::string_view bytes, Stream stream = Stream::kStdout) {
    relay->on_output(rank, stream, 1'700'000'000'000'000, bytes);
  }

  /// Reads what the pipe holds, with the loop running meanwhile.
  std::string read() {
    std::string text;
    std::array<char, 65536> block;
    for (;;) {
      context.restart();
      context.poll();
      const ssize_t bytes = ::read(reader.get(), block.data(), block.size());
      if (bytes <= 0) return text;
      text.append(block.data(), static_cast<std::size_t>(bytes));
    }
  }

  /// The relay's end; the standard descriptors are this process's own again.
  void close() {
    relay.reset();
    error_.reset();
    output_.reset();
  }

  boost::asio::io_context context;
  UniqueFd reader;
  const UniqueFd errors = memory_file();
  std::string credits;
  int progress = 0;

 private:
  std::optional<Redirected> output_;
  std::optional<Redirected> error_;

 public:
  std::optional<OutputRelay> relay;  // ends before the redirections do
};

std::string lines(std::size_t bytes) {
  std::string text;
  while (text.size() < bytes) text += std::string(63, 'x') + '\n';
  return text;
}

}  // namespace

TEST_CASE("lines of two ranks never mix, and each stream goes to its own descriptor", "[unit]") {
  Relay job;
  job.output(0, "one ");
  job.output(1, "other\n");
  job.output(0, "line\n");
  job.output(1, "trouble\n", Stream::kStderr);
  job.output(1, "no end");
  job.output(1, "");
  job.relay->flush();
  const std::string out = job.read();
  job.close();
  CHECK(out == "[1]<stdout>:other\n[0]<stdout>:one line\n[1]<stdout>:no end");
  CHECK(contents(job.errors) == "[1]<stderr>:trouble\n");
}

TEST_CASE("in an elastic job the rank that a process has decides whether its output is shown", "[unit]") {
  Relay job([](OutputRelay::Options& options) {
    options.ranks = {{"s1", true}, {"s2", false}};
    options.later_shown = false;
  });
  job.output(0, "of rank 0\nno end");
  job.output(1, "hidden\n");
  job.relay->add_process("s3");
  job.output(2, "it has no rank yet\n");
  job.relay->set_rank(1, 0);
  job.relay->set_rank(0, 1);
  job.relay->set_rank(2, 2);
  job.output(0, "hidden\n");
  job.output(1, "of the new rank 0\n");
  job.output(2, "hidden\n");
  job.relay->flush();
  const std::string out = job.read();
  job.close();
  CHECK(out == "[0]<stdout>:of rank 0\n[0]<stdout>:no end\n[0]<stdout>:of the new rank 0\n");
}

TEST_CASE("a stream gets credit for a quarter of its window at a time, once that is written", "[unit]") {
  Relay job;
  job.output(0, std::string(kWindow / 4 - 1, 'x'));
  job.relay->flush();
  const std::string before = job.credits;
  job.output(0, "\n");
  job.output(1, "a line\n");
  const std::string unwritten = job.credits;
  job.relay->flush();
  const std::string after = job.credits;
  job.relay->flush();
  const std::string again = job.credits;
  job.close();
  CHECK(before.empty());
  CHECK(unwritten.empty());
  CHECK(after == "0:1:1024 ");
  CHECK(again == after);
}

TEST_CASE("bytes beyond a stream's credit are an error, and are not taken", "[unit]") {
  Relay job;
  job.output(0, std::string(kWindow, 'x'));
  job.output(0, std::string(kWindow, 'e'), Stream::kStderr);  // a credit of its own
  std::string failure;
  try {
    job.output(0, "y");
  } catch (const Error& error) {
    failure = error.what();
  }
  job.relay->flush();
  job.output(0, "z\n");  // there is credit again
  job.relay->flush();
  const std::string out = job.read();
  job.close();
  CHECK(failure == "it sent more output of rank 0 than it had credit for");
  CHECK(out == "[0]<stdout>:" + std::string(kWindow, 'x') + "z\n");
}

TEST_CASE("a reader that takes nothing holds the credit back until it reads", "[unit]") {
  Relay job(widen);
  const std::string text = lines(2'000'000);
  job.output(0, text);
  job.relay->flush();
  const std::string while_full = job.credits;
  const bool was_drained = job.relay->drained();
  const std::string out = job.read();
  const std::string read = job.credits;
  const bool drained = job.relay->drained();
  job.close();
  CHECK(while_full.empty());
  CHECK_FALSE(was_drained);
  CHECK(read == fmt::format("0:1:{} ", text.size()));
  CHECK(drained);
  CHECK(job.progress > 0);
  CHECK(out.size() == text.size() + text.size() / 64 * std::string("[0]<stdout>:").size());
}

TEST_CASE("output of a rank that is not shown needs no reader for its credit", "[unit]") {
  Relay job([](OutputRelay::Options& options) {
    widen(options);
    options.ranks[1].shown = false;
  });
  job.output(0, lines(2'000'000));
  job.output(1, lines(1'000'000));
  job.relay->flush();
  const std::string credits = job.credits;
  job.close();
  CHECK(credits == "1:1:1000000 ");
}

TEST_CASE("a reader that has left breaks the output, which is thrown away from then on", "[unit]") {
  Relay job(widen);
  job.output(0, "line\n");
  job.reader.reset();
  job.relay->flush();
  const int error = job.relay->error();
  job.output(0, lines(2'000'000));
  job.relay->flush();
  const bool drained = job.relay->drained();
  job.close();
  CHECK(error == EPIPE);
  CHECK(drained);
}

TEST_CASE("held errors are taken out of the output, and the rest of them can be shown later", "[unit]") {
  Relay job;
  job.output(0, "before\n", Stream::kStderr);
  job.relay->hold_errors();
  job.output(0, "held\n", Stream::kStderr);
  job.output(1, "shown\n");
  job.relay->flush();
  const auto held = job.relay->take_errors();
  const auto again = job.relay->take_errors();
  job.relay->show_errors(1, "rest");
  job.relay->flush();
  const std::string out = job.read();
  job.close();
  CHECK(held == std::map<int, std::string>{{0, "held\n"}});
  CHECK(again.empty());
  CHECK(out == "[1]<stdout>:shown\n");
  CHECK(contents(job.errors) == "[0]<stderr>:before\n[1]<stderr>:rest");
}

TEST_CASE("the last lines of standard error are kept, however it was cut", "[unit]") {
  Relay job(widen);
  job.output(0, std::string(20'000, 'x') + "\nfi", Stream::kStderr);
  job.output(0, "rst\r\nsecond\n\nthird", Stream::kStderr);
  const auto two = job.relay->last_stderr_lines(0, 2);
  const auto three = job.relay->last_stderr_lines(0, 3);
  const auto none = job.relay->last_stderr_lines(1, 3);
  job.close();
  CHECK(two == std::vector<std::string>{"second", "third"});
  CHECK(three == std::vector<std::string>{"first", "second", "third"});
  CHECK(none.empty());
}

TEST_CASE("a new process whose files cannot be created has none, which is told once", "[unit]") {
  std::string directory = "/tmp/runjob-output-XXXXXX";
  REQUIRE(::mkdtemp(directory.data()) != nullptr);
  Relay job([&](OutputRelay::Options& options) { options.directory = directory; });
  std::filesystem::remove_all(directory);
  std::string failure;
  try {
    for (const char* host : {"s3", "s4"}) job.relay->add_process(host);
  } catch (const Error& error) {
    failure = error.what();
  }
  job.output(2, "it goes on\n");
  job.relay->flush();
  const std::string out = job.read();
  job.close();
  CHECK(failure.empty());
  CHECK(out == "[2]<stdout>:it goes on\n");
  CHECK(contents(job.errors) == "runjob: error: --output-filename: cannot make " + directory +
                                    "/rank.2: No such file or directory; the output of new processes is in no file\n");
}

TEST_CASE("a log line waits for a slow reader, and the loop does not", "[unit]") {
  Relay job(widen, /*errors_too=*/true);
  const std::string text = lines(2'000'000);
  job.output(0, text);
  job.relay->flush();
  runjob::log::error("trouble");
  const bool was_drained = job.relay->drained();
  const std::string out = job.read();
  job.close();
  CHECK_FALSE(was_drained);
  CHECK_THAT(out, ContainsSubstring("x\nrunjob: error: trouble\n"));
}

TEST_CASE("files get each stream unchanged, and a directory that cannot be made is named", "[unit]") {
  std::string directory = "/tmp/runjob-output-XXXXXX";
  REQUIRE(::mkdtemp(directory.data()) != nullptr);
  {
    Relay job([&](OutputRelay::Options& options) { options.directory = directory; });
    job.output(1, "half a line", Stream::kStderr);
    job.relay->flush();
    job.close();
  }
  std::ostringstream text;
  text << std::ifstream(directory + "/rank.1/stderr").rdbuf();
  CHECK(text.str() == "half a line");
  CHECK(std::filesystem::file_size(directory + "/rank.0/stdout") == 0);
  std::string message;
  try {
    Relay job([&](OutputRelay::Options& options) { options.directory = directory + "/rank.1/stderr"; });
  } catch (const Error& error) {
    message = error.what();
  }
  CHECK_THAT(message, ContainsSubstring("--output-filename: cannot make " + directory + "/rank.1/stderr: "));
  std::filesystem::remove_all(directory);
}
