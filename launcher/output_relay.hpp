#pragma once

#include <array>
#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/steady_timer.hpp>

#include "base/unique_handle.hpp"
#include "launcher/frame.hpp"
#include "launcher/line_prefixer.hpp"
#include "launcher/output_sink.hpp"

namespace runjob {

/// Where the ranks' output goes: to our standard output and error, line by line with a prefix, and unchanged
/// into DIRECTORY/rank.N/{stdout,stderr} when asked for. Gives each stream credit for what has been written,
/// so a slow reader slows the ranks and nothing is lost. Threads  the loop's one thread.
class OutputRelay {
 public:
  struct Options {
    int ranks = 1;
    bool timestamps = false;               ///< the source's time before each prefix
    std::optional<std::string> directory;  ///< made if missing
    std::int64_t window = 0;               ///< bytes of a stream that its agent may send before it needs credit
  };
  using SendCredit = std::function<void(int rank, Stream stream, std::int64_t bytes)>;

  /// Errors  Error(kUsage) when the directory or a file in it cannot be made.
  OutputRelay(boost::asio::any_io_executor executor, const Options& options, SendCredit send_credit);

  /// Bytes of a rank's stream, none = its end. Written by the next flush().
  void on_output(int rank, Stream stream, std::int64_t time_us, std::string_view bytes);

  /// Writes what has come in; to be called once per batch of frames.
  void flush();

  /// Whether everything has been written.
  bool drained() const { return stdout_.backlog() == 0 && stderr_.backlog() == 0; }
  /// Whether the reader of our standard output has gone.
  bool broken() const { return stdout_.broken(); }

  /// The end of what the rank wrote to standard error, at most `count` lines.
  std::vector<std::string> last_stderr_lines(int rank, std::size_t count) const;

  /// Called from the loop when a slow reader has taken some.
  std::function<void()> on_progress;

 private:
  struct StreamState {
    LinePrefixer::Source source;
    UniqueFd file;
    std::string file_path;
    std::chrono::steady_clock::time_point last_bytes;
    std::int64_t uncredited = 0;  // taken in, not yet given back as credit
  };
  struct Rank {
    std::array<StreamState, 2> streams;  // standard output, standard error
    std::string stderr_tail;
  };

  void open_files(const Options& options);
  void write_file(StreamState& stream, std::string_view bytes);
  const std::string& timestamp(std::int64_t time_us);
  void give_credit();
  bool holds_a_line() const;
  void watch_held_lines();
  void flush_held_lines();

  bool timestamps_;
  std::int64_t window_;
  SendCredit send_credit_;
  OutputSink stdout_;
  OutputSink stderr_;
  LinePrefixer stdout_lines_;
  LinePrefixer stderr_lines_;
  std::vector<Rank> ranks_;
  bool dirty_ = false;  // something has come in since the last flush()
  boost::asio::steady_timer prompt_timer_;
  bool prompt_timer_armed_ = false;
  std::int64_t timestamp_second_ = -1;
  std::string timestamp_text_;
};

}  // namespace runjob
