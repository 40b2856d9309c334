#include "launcher/output/plain_text.hpp"

#include "base/screen_text.hpp"

namespace runjob {

void PlainText::write_to(std::string& out) {
  if (out.empty()) {
    out.swap(text_);
  } else {
    out += text_;
  }
  text_.clear();
}

void PlainText::put(Source& source, std::string_view piece, std::string_view timestamp) {
  if (open_ != &source) {
    const bool line_of_another = open_ != nullptr || (returned_ != nullptr && returned_ != &source);
    if (open_ != nullptr) open_->is_cut = true;
    if (line_of_another) text_.push_back('\n');
    text_ += timestamp;
    text_ += source.tag;
  }
  if (bytes_ == Bytes::kForTerminal) {
    text_ += screen_lines(piece);
    if (piece.back() == '\r') text_.push_back('\r');
  } else {
    text_ += piece;
  }
  const char last = piece.back();
  open_ = last == '\n' || last == '\r' ? nullptr : &source;
  returned_ = last == '\r' ? &source : nullptr;
}

void PlainText::put_late_newline(Source& source) {
  if (returned_ != &source) return;  // another source has had to begin a new line
  text_.push_back('\n');
  returned_ = nullptr;
}

}  // namespace runjob
