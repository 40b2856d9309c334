#include "launcher/output_relay.hpp"

#include <cerrno>
#include <cstring>
#include <ctime>
#include <fcntl.h>
#include <filesystem>
#include <unistd.h>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/log.hpp"

namespace runjob {
namespace {

using namespace std::chrono_literals;

constexpr std::size_t kMaxBacklogBytes = 1024 * 1024;  // beyond it no credit is given
constexpr std::size_t kStderrTailBytes = 8 * 1024;
constexpr auto kPromptDelay = 100ms;  // a line that has not ended by then is shown as it is

}  // namespace

OutputRelay::OutputRelay(boost::asio::any_io_executor executor, const Options& options, SendCredit send_credit)
    : timestamps_(options.timestamps),
      window_(options.window),
      send_credit_(std::move(send_credit)),
      stdout_(executor, STDOUT_FILENO),
      stderr_(executor, STDERR_FILENO),
      ranks_(static_cast<std::size_t>(options.ranks)),
      prompt_timer_(executor) {
  for (int rank = 0; rank < options.ranks; ++rank) {
    auto& streams = ranks_[static_cast<std::size_t>(rank)].streams;
    streams[0].source = {rank, Stream::kStdout, {}, false};
    streams[1].source = {rank, Stream::kStderr, {}, false};
  }
  if (options.directory) open_files(options);
  const auto progress = [this] {
    for (Rank& rank : ranks_) {
      for (StreamState& stream : rank.streams)
        stream.last_bytes = std::chrono::steady_clock::now();  // it could not go on
    }
    give_credit();
    if (on_progress) on_progress();
  };
  stdout_.on_progress = progress;
  stderr_.on_progress = progress;
}

void OutputRelay::open_files(const Options& options) {
  const std::size_t width = std::to_string(options.ranks - 1).size();
  for (Rank& rank : ranks_) {
    const int number = rank.streams[0].source.rank;
    const std::string directory = fmt::format("{}/rank.{:0{}}", *options.directory, number, width);
    std::error_code error;
    std::filesystem::create_directories(directory, error);
    if (error) {
      throw Error(Errc::kUsage, fmt::format("--output-filename: cannot make {}: {}", directory, error.message()));
    }
    for (std::size_t i = 0; i < 2; ++i) {
      StreamState& stream = rank.streams[i];
      stream.file_path = directory + (i == 0 ? "/stdout" : "/stderr");
      stream.file.reset(::open(stream.file_path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666));
      if (!stream.file) {
        throw Error(Errc::kUsage,
                    fmt::format("--output-filename: cannot write {}: {}", stream.file_path, std::strerror(errno)));
      }
    }
  }
}

void OutputRelay::on_output(int rank, Stream stream, std::int64_t time_us, std::string_view bytes) {
  Rank& state = ranks_.at(static_cast<std::size_t>(rank));
  const bool error_stream = stream == Stream::kStderr;
  StreamState& from = state.streams[error_stream ? 1 : 0];
  LinePrefixer& lines = error_stream ? stderr_lines_ : stdout_lines_;
  OutputSink& sink = error_stream ? stderr_ : stdout_;
  dirty_ = true;
  if (bytes.empty()) return lines.flush(from.source, timestamp(time_us), sink.buffer());
  from.last_bytes = std::chrono::steady_clock::now();
  from.uncredited += static_cast<std::int64_t>(bytes.size());
  lines.feed(from.source, bytes, timestamp(time_us), sink.buffer());
  if (from.file) write_file(from, bytes);
  if (error_stream) {
    state.stderr_tail += bytes.substr(bytes.size() > kStderrTailBytes ? bytes.size() - kStderrTailBytes : 0);
    if (state.stderr_tail.size() > kStderrTailBytes)
      state.stderr_tail.erase(0, state.stderr_tail.size() - kStderrTailBytes);
  }
}

void OutputRelay::write_file(StreamState& stream, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(stream.file.get(), bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) {
      log::error("cannot write {}: {}; the rest of this stream is not in the file", stream.file_path,
                 std::strerror(errno));
      return stream.file.reset();
    }
    bytes.remove_prefix(static_cast<std::size_t>(written));
  }
}

/// As asctime() writes it: "Mon Jan 20 12:00:01 2020".
const std::string& OutputRelay::timestamp(std::int64_t time_us) {
  const std::int64_t second = timestamps_ ? time_us / 1'000'000 : -1;
  if (second == timestamp_second_) return timestamp_text_;
  timestamp_second_ = second;
  const auto time = static_cast<std::time_t>(second);
  std::tm local{};
  ::localtime_r(&time, &local);
  char text[64];
  timestamp_text_.assign(text, std::strftime(text, sizeof text, "%a %b %e %H:%M:%S %Y", &local));
  return timestamp_text_;
}

void OutputRelay::flush() {
  if (!std::exchange(dirty_, false)) return;  // most batches of a large job hold no output
  stdout_.flush();
  stderr_.flush();
  give_credit();
  watch_held_lines();
}

void OutputRelay::give_credit() {
  for (Rank& rank : ranks_) {
    for (StreamState& stream : rank.streams) {
      const OutputSink& sink = stream.source.stream == Stream::kStderr ? stderr_ : stdout_;
      if (stream.uncredited < window_ / 4 || sink.backlog() > kMaxBacklogBytes) continue;
      send_credit_(stream.source.rank, stream.source.stream, std::exchange(stream.uncredited, 0));
    }
  }
}

bool OutputRelay::holds_a_line() const {
  for (const Rank& rank : ranks_) {
    if (!rank.streams[0].source.held.empty() || !rank.streams[1].source.held.empty()) return true;
  }
  return false;
}

void OutputRelay::watch_held_lines() {
  if (prompt_timer_armed_ || !holds_a_line()) return;
  prompt_timer_armed_ = true;
  prompt_timer_.expires_after(kPromptDelay);
  prompt_timer_.async_wait([this](boost::system::error_code error) {
    prompt_timer_armed_ = false;
    if (error) return;
    flush_held_lines();
    watch_held_lines();
  });
}

/// A rank that is slowed down by our reader has not stopped in the middle of a line by itself: its line waits on.
void OutputRelay::flush_held_lines() {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  const auto now_us = std::chrono::duration_cast<std::chrono::microseconds>(now).count();
  const auto silent_since = std::chrono::steady_clock::now() - kPromptDelay;
  for (Rank& rank : ranks_) {
    for (StreamState& stream : rank.streams) {
      const bool error_stream = stream.source.stream == Stream::kStderr;
      OutputSink& sink = error_stream ? stderr_ : stdout_;
      if (sink.backlog() > 0 || stream.last_bytes > silent_since) continue;
      (error_stream ? stderr_lines_ : stdout_lines_).flush(stream.source, timestamp(now_us), sink.buffer());
    }
  }
  stdout_.flush();
  stderr_.flush();
}

std::vector<std::string> OutputRelay::last_stderr_lines(int rank, std::size_t count) const {
  std::string_view rest = ranks_.at(static_cast<std::size_t>(rank)).stderr_tail;
  std::vector<std::string> lines;
  while (!rest.empty() && lines.size() < count) {
    while (!rest.empty() && (rest.back() == '\n' || rest.back() == '\r')) rest.remove_suffix(1);
    const std::size_t before = rest.find_last_of("\r\n");
    const std::size_t begin = before == std::string_view::npos ? 0 : before + 1;
    if (begin < rest.size()) lines.emplace(lines.begin(), rest.substr(begin));
    rest = rest.substr(0, begin);
  }
  return lines;
}

}  // namespace runjob
