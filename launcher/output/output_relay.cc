#include "launcher/output/output_relay.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <unistd.h>
#include <utility>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/log.hpp"
#include "launcher/output/output_files.hpp"

namespace runjob {
namespace {

using namespace std::chrono_literals;

constexpr std::size_t kMaxBacklogBytes = 1024 * 1024;  // beyond it no credit is given
constexpr std::size_t kStderrTailBytes = 8 * 1024;
constexpr std::size_t kMostHeldErrors = 256 * 1024;  // of one rank
constexpr auto kPromptDelay = 100ms;                 // a line that has not ended by then is shown as it is

std::string tag_of(const OutputRelay::Options& options, int rank, const std::string& host, Stream stream) {
  const int descriptor = stream == Stream::kStderr ? STDERR_FILENO : STDOUT_FILENO;
  const bool coloured = options.colours && ::isatty(descriptor) == 1;
  return output_tag(options.tags, options.time, rank, host, stream, coloured);
}

bool shows(const OutputRelay::Options& options, int rank) {
  const auto index = static_cast<std::size_t>(rank);
  return index < options.ranks.size() ? options.ranks[index].shown : options.later_shown;
}

std::int64_t now_us() {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::microseconds>(now).count();
}

}  // namespace

OutputRelay::OutputRelay(boost::asio::any_io_executor executor, const Options& options, SendCredit send_credit)
    : options_(options),
      send_credit_(std::move(send_credit)),
      time_(options.time),
      stdout_(executor, STDOUT_FILENO, options.terminal),
      processes_(options.ranks.size()),
      prompt_timer_(executor) {
  if (!same_file(STDOUT_FILENO, STDERR_FILENO)) stderr_.emplace(executor, STDERR_FILENO, options.terminal);
  if (options.directory) files_.emplace(*options.directory);
  for (std::size_t i = 0; i < processes_.size(); ++i) {
    name_source(static_cast<int>(i), options.ranks[i]);
    if (files_) open_files(static_cast<int>(i));
  }
  const auto progress = [this] {
    for (const int order : unsettled_)
      stream_of(order).last_bytes = std::chrono::steady_clock::now();  // it was held back
    give_credit();
    if (on_progress) on_progress();
  };
  stdout_.sink().on_progress = progress;
  if (stderr_) stderr_->sink().on_progress = progress;
  log::redirect([this](std::string_view line) { destination(Stream::kStderr).add_line(line); });
}

OutputRelay::~OutputRelay() {
  log::redirect({});
  finish();
}

void OutputRelay::add_process(const std::string& host) {
  processes_.emplace_back();
  const int process = static_cast<int>(processes_.size()) - 1;
  name_source(process, {host, options_.later_shown});
  try {
    if (files_) open_files(process);
  } catch (const Error& error) {
    log::error("{}; the output of new processes is in no file", error.what());
    files_.reset();
  }
}

void OutputRelay::set_rank(int process, int rank) {
  ProcessState& state = processes_.at(static_cast<std::size_t>(process));
  for (StreamState& stream : state.streams) {
    const bool is_shown = shows(options_, rank);
    if (stream.shown && !is_shown) on_output(process, stream.stream, now_us(), "");  // the line that has not ended
    stream.shown = is_shown;
    stream.source.tag = tag_of(options_, rank, state.host, stream.stream);
  }
}

void OutputRelay::name_source(int process, const Rank& rank) {
  ProcessState& named = processes_.at(static_cast<std::size_t>(process));
  named.host = rank.host;
  for (const Stream stream : {Stream::kStdout, Stream::kStderr}) {
    StreamState& state = named.streams[stream == Stream::kStderr ? 1 : 0];
    state.process = process;
    state.stream = stream;
    state.shown = rank.shown;
    state.source.order = 2 * state.process + (stream == Stream::kStderr ? 1 : 0);
    state.source.tag = tag_of(options_, process, rank.host, stream);
  }
}

void OutputRelay::open_files(int process) {
  const std::size_t width = std::to_string(std::max<std::size_t>(options_.ranks.size(), 1) - 1).size();
  const std::string folder = fmt::format("rank.{:0{}}", process, width);
  auto& streams = processes_.at(static_cast<std::size_t>(process)).streams;
  OutputFiles::Streams files = files_->create(folder);
  streams[0].file = std::move(files.standard_output);
  streams[1].file = std::move(files.standard_error);
  streams[0].file_path = fmt::format("{}/{}/stdout", *options_.directory, folder);
  streams[1].file_path = fmt::format("{}/{}/stderr", *options_.directory, folder);
}

void OutputRelay::on_output(int process, Stream stream, std::int64_t time_us, std::string_view bytes) {
  ProcessState& state = processes_.at(static_cast<std::size_t>(process));
  const bool error_stream = stream == Stream::kStderr;
  StreamState& from = state.streams[error_stream ? 1 : 0];
  OutputText& text = destination(stream).text();
  unsettled_.insert(from.source.order);
  if (bytes.empty()) return text.end(from.source, time_.text(time_us));
  from.last_bytes = std::chrono::steady_clock::now();
  if (std::cmp_greater(bytes.size(), options_.window - from.uncredited))
    throw Error(Errc::kProtocol, fmt::format("it sent more output of rank {} than it had credit for", process));
  from.uncredited += static_cast<std::int64_t>(bytes.size());
  if (holding_errors_ && error_stream && state.held_errors.size() < kMostHeldErrors) {
    state.held_errors += bytes;
  } else if (from.shown) {
    text.feed(from.source, bytes, time_.text(time_us));
  }
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

std::map<int, std::string> OutputRelay::take_errors() {
  std::map<int, std::string> result;
  for (ProcessState& process : processes_) {
    if (!process.held_errors.empty()) result[process.streams[0].process] = std::exchange(process.held_errors, {});
  }
  return result;
}

void OutputRelay::show_errors(int process, std::string_view text) {
  StreamState& stream = processes_.at(static_cast<std::size_t>(process)).streams[1];
  if (!stream.shown || text.empty()) return;
  const std::string time(time_.text(now_us()));
  OutputText& lines = destination(Stream::kStderr).text();
  lines.feed(stream.source, text, time);
  lines.end(stream.source, time);
}

void OutputRelay::flush() {
  stdout_.flush();
  if (stderr_) stderr_->flush();
  give_credit();
  watch_held_lines();
}

void OutputRelay::set_status(const std::string& text) {
  OutputDestination& where = destination(Stream::kStderr);
  if (where.terminal() == nullptr) return;
  where.terminal()->set_status(text);
  where.flush();
}

void OutputRelay::hide_rows() {
  stdout_.hide_rows();
  if (stderr_) stderr_->hide_rows();
}

void OutputRelay::finish() {
  for (OutputDestination* where : {&stdout_, stderr_ ? &*stderr_ : nullptr}) {
    if (where == nullptr || where->terminal() == nullptr) continue;
    where->terminal()->close();
    where->flush();
  }
}

void OutputRelay::drain() {
  stdout_.sink().drain();
  if (stderr_) stderr_->sink().drain();
}

void OutputRelay::give_credit() {
  for (const int order : unsettled_) {
    StreamState& stream = stream_of(order);
    const std::size_t backlog = stream.shown ? destination(stream.stream).sink().backlog() : 0;
    if (!stream.is_owed_credit(options_.window) || backlog > kMaxBacklogBytes) continue;
    send_credit_(stream.process, stream.stream, std::exchange(stream.uncredited, 0));
  }
  std::erase_if(unsettled_, [this](int order) {
    const StreamState& stream = stream_of(order);
    return !stream.is_owed_credit(options_.window) && stream.source.held.empty();
  });
}

void OutputRelay::watch_held_lines() {
  const auto holds_a_line = [this](int order) { return !stream_of(order).source.held.empty(); };
  if (prompt_timer_armed_ || std::none_of(unsettled_.begin(), unsettled_.end(), holds_a_line)) return;
  prompt_timer_armed_ = true;
  prompt_timer_.expires_after(kPromptDelay);
  prompt_timer_.async_wait([this](boost::system::error_code error) {
    prompt_timer_armed_ = false;
    if (error) return;
    flush_held_lines();
    watch_held_lines();
  });
}

/// A line waits longer if a slow reader has stopped its rank: then the rank did not pause in the middle of it.
void OutputRelay::flush_held_lines() {
  const std::string time(time_.text(now_us()));
  const auto silent_since = std::chrono::steady_clock::now() - kPromptDelay;
  for (const int order : unsettled_) {
    StreamState& stream = stream_of(order);
    OutputDestination& where = destination(stream.stream);
    if (where.sink().backlog() > 0 || stream.last_bytes > silent_since) continue;
    where.text().flush(stream.source, time);
  }
  stdout_.flush();
  if (stderr_) stderr_->flush();
}

std::vector<std::string> OutputRelay::last_stderr_lines(int process, std::size_t count) const {
  std::string_view rest = processes_.at(static_cast<std::size_t>(process)).stderr_tail;
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
