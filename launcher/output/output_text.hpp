#pragma once

#include <string>
#include <string_view>

namespace runjob {

/// Merges the streams of many ranks into one text for one destination. This class cuts each stream into pieces, which
/// end at '\n' or '\r' (kept). plain_text.hpp (files, pipes) and terminal_text.hpp decide what becomes of a piece. It
/// does no I/O.
///
/// An unfinished line is held until it ends, so that lines of two ranks never mix. flush() releases it early, for
/// example for a prompt.
class OutputText {
 public:
  /// One stream of one rank.
  /// Owner  the caller; it outlives the text.
  struct Source {
    int order = 0;          ///< a number that differs from every other source's
    std::string tag;        ///< precedes each line
    std::string held;       ///< the beginning of an unfinished line
    bool after_cr = false;  ///< the last piece ended with '\r': a '\n' that follows belongs to it
    /// Its line was shown early, and then another source has started a new one: the '\n' was already written.
    bool is_cut = false;
  };

  /// The longest line that is held; longer lines are written in parts.
  static constexpr std::size_t kMaxHeldBytes = 64 * 1024;

  virtual ~OutputText() = default;

  /// Takes more bytes of a stream. `timestamp` precedes each tag, "" for none.
  void feed(Source& source, std::string_view bytes, std::string_view timestamp);

  /// Releases the bytes that `source` holds, although the line has not ended. The beginning of a character of UTF-8
  /// stays until its other bytes come.
  void flush(Source& source, std::string_view timestamp);

  /// The stream has ended.
  void end(Source& source, std::string_view timestamp);

  /// Appends to `out` the text since the last call.
  virtual void write_to(std::string& out) = 0;

 protected:
  /// Takes a piece. It ends with '\n' or '\r', or is the beginning of a line whose rest is the next piece.
  virtual void put(Source& source, std::string_view piece, std::string_view timestamp) = 0;
  /// Takes a '\n' that follows a piece which ended with '\r'.
  virtual void put_late_newline(Source& source) = 0;
  virtual void put_end(Source& source) = 0;

 private:
  void put_held(Source& source, std::size_t bytes, std::string_view timestamp);
};

}  // namespace runjob
