#pragma once

#include <string>
#include <string_view>

#include "launcher/frame.hpp"

namespace runjob {

/// Turns the streams of many ranks into one text: a piece ends at '\n' or '\r' (which is kept) and starts
/// with
/// `[rank]<stdout>:`. A value type without I/O; one per destination (standard output, standard error).
///
/// A line that has not ended is held until it does, so that lines of two ranks never mix; flush() lets it out
/// early, as for a prompt. Should another rank write then, its text begins on a new line, and the held rank's
/// rest gets a new prefix.
class LinePrefixer {
 public:
  /// Which stream, and the text before each of its pieces.
  struct Source {
    int rank = 0;
    Stream stream = Stream::kStdout;
    std::string held;       ///< the beginning of a line
    bool after_cr = false;  ///< the last piece ended with '\r': a '\n' that follows belongs to it
  };

  /// Longest line that is held; longer ones come out in parts.
  static constexpr std::size_t kMaxHeldBytes = 64 * 1024;

  /// Appends to `out` what `bytes` complete. `timestamp` is put before each prefix, "" for none.
  void feed(Source& source, std::string_view bytes, std::string_view timestamp, std::string& out);

  /// Appends what `source` holds, although the line has not ended.
  void flush(Source& source, std::string_view timestamp, std::string& out);

 private:
  void put(Source& source, std::string_view piece, std::string_view timestamp, std::string& out);

  const Source* open_ = nullptr;  // whose unfinished line the text ends with
};

}  // namespace runjob
