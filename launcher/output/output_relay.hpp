#pragma once

#include <array>
#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/steady_timer.hpp>

#include "base/unique_handle.hpp"
#include "launcher/channel/frame.hpp"
#include "launcher/output/output_destination.hpp"
#include "launcher/output/output_files.hpp"
#include "launcher/output/output_tag.hpp"
#include "launcher/output/output_text.hpp"
#include "launcher/output/output_time.hpp"

namespace runjob {

/// Relays the ranks' output to this process's standard output and error, line by line with a tag, and unchanged into
/// DIRECTORY/rank.N/{stdout,stderr} if requested. Gives each stream credit for the bytes that were written, so that a
/// slow reader slows the ranks and nothing is lost. Log lines take the same way to standard error, so that they never
/// block the loop. On a terminal, progress bars and the status row stay below the lines, and log lines appear above
/// them.
/// A stream is that of a process, by its number, which in a job of fixed size is its rank.
/// Threads  the loop's one thread; one relay at a time.
class OutputRelay {
 public:
  struct Rank {
    std::string host;
    bool shown = true;  ///< false: its output goes to its files only
  };
  struct Options {
    std::vector<Rank> ranks;
    bool later_shown = true;  ///< likewise for the output of ranks beyond these, and of processes without a rank
    TagStyle tags;
    OutputTime::Format time = OutputTime::Format::kNone;  ///< precedes each tag
    TerminalUse terminal = TerminalUse::kRows;
    bool colours = true;                   ///< tags may have colours on a terminal
    std::optional<std::string> directory;  ///< created if missing
    std::int64_t window = 0;               ///< bytes of a stream that its agent may send before it needs credit
  };
  using SendCredit = std::function<void(int process, Stream stream, std::int64_t bytes)>;

  /// Errors  Error(kUsage) when the directory or a file in it cannot be created.
  OutputRelay(boost::asio::any_io_executor executor, const Options& options, SendCredit send_credit);
  ~OutputRelay();
  OutputRelay(const OutputRelay&) = delete;
  OutputRelay& operator=(const OutputRelay&) = delete;

  /// A new process of an elastic job writes from now on: its number is the next free one. Its files, if there are any,
  /// have that number. When they cannot be created, that is logged, and no later process gets any.
  void add_process(const std::string& host);
  /// The process has another rank now, which its tags show and which decides whether its output is shown.
  void set_rank(int process, int rank);

  /// Takes bytes of a process's stream; no bytes mean its end. The next flush() writes them.
  /// Errors  Error(kProtocol) for bytes beyond the credit of the stream, which are not taken.
  void on_output(int process, Stream stream, std::int64_t time_us, std::string_view bytes);

  /// Writes what has been taken. Must be called once per batch of frames.
  void flush();

  /// From now on standard error is not shown but kept for take_errors(), up to a limit.
  void hold_errors() { holding_errors_ = true; }
  /// Returns the kept standard error of each process and stops keeping it.
  std::map<int, std::string> take_errors();
  /// Shows lines of a process's standard error, as if they arrived now.
  void show_errors(int process, std::string_view text);

  /// True if there is a terminal for set_status().
  bool has_status() { return destination(Stream::kStderr).terminal() != nullptr; }
  /// Sets the row on the terminal below all output, "" for none. It is redrawn at once.
  void set_status(const std::string& text);

  /// Removes the rows from the terminal until the next flush(), while this process is stopped.
  void hide_rows();
  /// Called when no more output will come: releases the terminal.
  void finish();

  /// True if everything has been written.
  bool drained() { return stdout_.sink().backlog() == 0 && destination(Stream::kStderr).sink().backlog() == 0; }
  /// Writes all of it, as soon as the readers take it. For the last lines, when the loop has ended. Blocks.
  void drain();
  /// The error of the write to standard output that failed; 0 if none has. EPIPE: the reader is gone.
  int error() { return stdout_.sink().error(); }

  /// The last lines that the process wrote to standard error, at most `count`.
  std::vector<std::string> last_stderr_lines(int process, std::size_t count) const;

  /// Called from the loop when a slow reader has read some bytes.
  std::function<void()> on_progress;

 private:
  struct StreamState {
    int process = 0;
    Stream stream = Stream::kStdout;
    bool shown = true;
    OutputText::Source source;
    UniqueFd file;
    std::string file_path;
    std::chrono::steady_clock::time_point last_bytes;
    std::int64_t uncredited = 0;  // bytes that were taken, but not yet credited

    bool is_owed_credit(std::int64_t window) const { return uncredited > 0 && uncredited >= window / 4; }
  };
  struct ProcessState {
    std::array<StreamState, 2> streams;  // standard output, standard error
    std::string host;
    std::string stderr_tail;
    std::string held_errors;
  };

  OutputDestination& destination(Stream stream) { return stream == Stream::kStderr && stderr_ ? *stderr_ : stdout_; }
  StreamState& stream_of(int order) {
    return processes_[static_cast<std::size_t>(order) / 2].streams[static_cast<std::size_t>(order % 2)];
  }
  void name_source(int process, const Rank& rank);
  void open_files(int process);
  void write_file(StreamState& stream, std::string_view bytes);
  void give_credit();
  void watch_held_lines();
  void flush_held_lines();

  const Options options_;
  std::optional<OutputFiles> files_;
  SendCredit send_credit_;
  OutputTime time_;
  OutputDestination stdout_;
  std::optional<OutputDestination> stderr_;  // none if both go to the same place
  std::vector<ProcessState> processes_;
  std::set<int> unsettled_;  // the streams that may be owed credit or hold a line, by their OutputText::Source::order
  boost::asio::steady_timer prompt_timer_;
  bool prompt_timer_armed_ = false;
  bool holding_errors_ = false;
};

}  // namespace runjob
