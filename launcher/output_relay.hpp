#pragma once

#include <array>
#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/steady_timer.hpp>

#include "base/unique_handle.hpp"
#include "launcher/frame.hpp"
#include "launcher/output_destination.hpp"
#include "launcher/output_tag.hpp"
#include "launcher/output_text.hpp"
#include "launcher/output_time.hpp"

namespace runjob {

/// Where the ranks' output goes: to our standard output and error, line by line with a tag, and unchanged
/// into DIRECTORY/rank.N/{stdout,stderr} when asked for. Gives each stream credit for what has been written,
/// so a slow reader slows the ranks and nothing is lost. On a terminal, progress bars and our own status stand below
/// the lines, and what is logged meanwhile goes above them. Threads  the loop's one thread; one relay at a time.
class OutputRelay {
 public:
  struct Rank {
    std::string host;
    bool shown = true;  ///< else its output goes to its files only
  };
  struct Options {
    std::vector<Rank> ranks;
    TagStyle tags;
    OutputTime::Format time = OutputTime::Format::kNone;  ///< before each tag
    bool rows = true;                                     ///< a terminal may be drawn on
    bool colours = true;                                  ///< tags may have them on a terminal
    std::optional<std::string> directory;                 ///< made if missing
    std::int64_t window = 0;  ///< bytes of a stream that its agent may send before it needs credit
  };
  using SendCredit = std::function<void(int rank, Stream stream, std::int64_t bytes)>;

  /// Errors  Error(kUsage) when the directory or a file in it cannot be made.
  OutputRelay(boost::asio::any_io_executor executor, const Options& options, SendCredit send_credit);
  ~OutputRelay();
  OutputRelay(const OutputRelay&) = delete;
  OutputRelay& operator=(const OutputRelay&) = delete;

  /// Bytes of a rank's stream, none = its end. Written by the next flush().
  void on_output(int rank, Stream stream, std::int64_t time_us, std::string_view bytes);

  /// Writes what has come in; to be called once per batch of frames.
  void flush();

  /// From now on standard error is not shown but kept for take_errors(), as far as it is not very much.
  void hold_errors() { holding_errors_ = true; }
  /// What has been kept of each rank's, and no longer is.
  std::map<int, std::string> take_errors();
  /// Shows lines of a rank's standard error, as if they came now.
  void show_errors(int rank, std::string_view text);

  /// Whether there is a terminal for set_status().
  bool has_status() { return destination(Stream::kStderr).terminal() != nullptr; }
  /// A row on the terminal below all output, "" for none; redrawn at once.
  void set_status(const std::string& text);

  /// Takes the rows from the terminal until the next flush(), for the time in which we are stopped.
  void hide_rows();
  /// No more output will come: leaves the terminal as ours no longer.
  void finish();

  /// Whether everything has been written.
  bool drained() { return stdout_.sink().backlog() == 0 && destination(Stream::kStderr).sink().backlog() == 0; }
  /// Whether the reader of our standard output has gone.
  bool broken() { return stdout_.sink().broken(); }

  /// The end of what the rank wrote to standard error, at most `count` lines.
  std::vector<std::string> last_stderr_lines(int rank, std::size_t count) const;

  /// Called from the loop when a slow reader has taken some.
  std::function<void()> on_progress;

 private:
  struct StreamState {
    int rank = 0;
    Stream stream = Stream::kStdout;
    bool shown = true;
    OutputText::Source source;
    UniqueFd file;
    std::string file_path;
    std::chrono::steady_clock::time_point last_bytes;
    std::int64_t uncredited = 0;  // taken in, not yet given back as credit
  };
  struct RankState {
    std::array<StreamState, 2> streams;  // standard output, standard error
    std::string stderr_tail;
    std::string held_errors;
  };

  OutputDestination& destination(Stream stream) { return stream == Stream::kStderr && stderr_ ? *stderr_ : stdout_; }
  void name_sources(const Options& options);
  void open_files(const std::string& where);
  void write_file(StreamState& stream, std::string_view bytes);
  void on_log_line(std::string_view line);
  void give_credit();
  bool holds_a_line() const;
  void watch_held_lines();
  void flush_held_lines();

  std::int64_t window_;
  SendCredit send_credit_;
  bool dirty_ = false;  // output has come in since the last flush()
  OutputTime time_;
  OutputDestination stdout_;
  std::optional<OutputDestination> stderr_;  // none when both lead to one place
  std::vector<RankState> ranks_;
  boost::asio::steady_timer prompt_timer_;
  bool prompt_timer_armed_ = false;
  bool holding_errors_ = false;
};

}  // namespace runjob
