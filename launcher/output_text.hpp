#pragma once

#include <string>
#include <string_view>

namespace runjob {

/// Turns the streams of many ranks into one text for one destination. This class cuts each stream into pieces, which end
/// at '\n' or '\r' (kept); what becomes of a piece is for plain_text.hpp (files, pipes) and terminal_text.hpp. Without I/O.
///
/// A line that has not ended is held until it does, so that lines of two ranks never mix; flush() lets it out
/// early, as for a prompt.
class OutputText {
 public:
  /// One stream of one rank. Outlives the text.
  struct Source {
    int order = 0;          ///< of another number than every other source's
    std::string tag;        ///< stands before each line
    std::string held;       ///< the beginning of a line
    bool after_cr = false;  ///< the last piece ended with '\r': a '\n' that follows belongs to it
    /// Its line was shown early, and then another source has begun a new one: the '\n' is there already.
    bool is_cut = false;
  };

  /// Longest line that is held; longer ones come out in parts.
  static constexpr std::size_t kMaxHeldBytes = 64 * 1024;

  virtual ~OutputText() = default;

  /// Takes more of a stream. `timestamp` is put before each tag, "" for none.
  void feed(Source& source, std::string_view bytes, std::string_view timestamp);

  /// Lets out what `source` holds, although the line has not ended.
  void flush(Source& source, std::string_view timestamp);

  /// The stream has ended.
  void end(Source& source, std::string_view timestamp);

  /// Appends to `out` what is to be written since the last call.
  virtual void write_to(std::string& out) = 0;

 protected:
  /// A piece: it ends with '\n' or '\r', or is the beginning of a line whose rest comes with the next one.
  virtual void put(Source& source, std::string_view piece, std::string_view timestamp) = 0;
  /// A '\n' that came after a piece which had ended with '\r'.
  virtual void put_late_newline(Source& source) = 0;
  virtual void put_end(Source& source) = 0;
};

}  // namespace runjob
