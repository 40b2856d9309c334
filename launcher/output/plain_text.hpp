#pragma once

#include <string>
#include <string_view>

#include "launcher/output/output_text.hpp"

namespace runjob {

/// The text for a file or a pipe: every byte of every stream, each piece after its source's tag. What a line shown
/// early lacks follows it, unless another source has written meanwhile: then that begins on a new line, and the rest
/// gets a tag of its own, or nothing when it is only the end of the line. So it is with a progress bar, whose updates
/// end with '\r': they stand on one line until somebody else writes.
class PlainText : public OutputText {
 public:
  enum class Bytes {
    kAll,
    kForTerminal,  ///< each piece passes screen_lines()
  };
  explicit PlainText(Bytes bytes = Bytes::kAll) : bytes_(bytes) {}

  void write_to(std::string& out) override;

 private:
  void put(Source& source, std::string_view piece, std::string_view timestamp) override;
  void put_late_newline(Source& source) override;
  void put_end(Source&) override {}

  const Bytes bytes_;
  std::string text_;                  // not yet taken
  Source* open_ = nullptr;            // whose unfinished line the text ends with
  const Source* returned_ = nullptr;  // whose line, ended with '\r', it ends with
};

}  // namespace runjob
