#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "launcher/output/output_text.hpp"

namespace runjob {

/// The text for a terminal. Complete lines scroll; below them stand rows that are redrawn in place: the progress bar of
/// each source that has one (its updates end with '\r'), and runjob's own status. A stream that ends leaves the last
/// state of its bar as a line.
///
/// The ranks' output passes screen_lines(): a sequence that moves the cursor would hit somebody else's line.
/// Source   ECMA-48 (CSI, ED, CUU); xterm's control sequences for DECAWM, which keeps a row from wrapping.
class TerminalText : public OutputText {
 public:
  /// The terminal's height from now on; 0 when no rows are to be drawn, as in a terminal's background.
  void set_height(int lines);

  /// A line of runjob's own, with its newline.
  void add_line(std::string_view line);

  /// The last row; "" for none.
  void set_status(std::string_view text);

  /// What bars there are become lines, and the status goes.
  void close();

  void write_to(std::string& out) override;

 private:
  struct Bar {
    std::string tag;          ///< and the timestamp
    std::string text;         ///< as shown
    bool unfinished = false;  ///< the rest of this update is still to come
  };

  void put(Source& source, std::string_view piece, std::string_view timestamp) override;
  void put_late_newline(Source& source) override;
  void put_end(Source& source) override;

  void put_line(Source& source, std::string_view text, std::string_view timestamp);
  void put_update(Source& source, std::string_view text, std::string_view timestamp, bool unfinished);
  void put_beginning(Source& source, std::string_view text, std::string_view timestamp);
  void begin_line();
  void end_line();
  void settle_bar(int order);
  std::vector<std::string> rows() const;

  int height_ = 24;
  std::string lines_;        // to be written above the rows
  std::map<int, Bar> bars_;  // by source
  std::string status_;
  Source* open_ = nullptr;      // whose unfinished line the lines end with: no rows stand below it
  std::size_t drawn_rows_ = 0;  // on the screen, the cursor at the end of the last one
  bool changed_ = false;
};

}  // namespace runjob
