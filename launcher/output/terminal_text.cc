#include "launcher/output/terminal_text.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "base/screen_text.hpp"

namespace runjob {
namespace {

constexpr char kEscape = '\x1b';

std::string_view without_end_of_line(std::string_view text) {
  while (!text.empty() && (text.back() == '\n' || text.back() == '\r')) text.remove_suffix(1);
  return text;
}

}  // namespace

void TerminalText::set_height(int lines) {
  if (height_ == lines) return;
  height_ = lines;
  changed_ = true;
}

void TerminalText::add_line(std::string_view line) {
  begin_line();
  lines_ += line;
  changed_ = true;
}

void TerminalText::set_status(std::string_view text) {
  std::string shown = screen_text(without_end_of_line(text));
  if (status_ == shown) return;
  status_ = std::move(shown);
  changed_ = true;
}

void TerminalText::close() {
  while (!bars_.empty()) settle_bar(bars_.begin()->first);
  set_status("");
}

void TerminalText::put(Source& source, std::string_view piece, std::string_view timestamp) {
  changed_ = true;
  const std::string text = screen_lines(without_end_of_line(piece));
  if (piece.back() == '\n') return put_line(source, text, timestamp);
  const bool has_bar = bars_.count(source.order) != 0;
  if (piece.back() == '\r' || has_bar) return put_update(source, text, timestamp, piece.back() != '\r');
  put_beginning(source, text, timestamp);
}

void TerminalText::put_late_newline(Source& source) {
  settle_bar(source.order);
}

void TerminalText::put_end(Source& source) {
  settle_bar(source.order);
}

void TerminalText::put_line(Source& source, std::string_view text, std::string_view timestamp) {
  const auto bar = bars_.find(source.order);
  if (bar != bars_.end() && bar->second.unfinished) {
    bar->second.text += text;
    return settle_bar(source.order);
  }
  if (bar != bars_.end()) bars_.erase(bar);
  put_beginning(source, text, timestamp);
  end_line();
}

void TerminalText::put_update(Source& source, std::string_view text, std::string_view timestamp, bool unfinished) {
  if (open_ == &source) end_line();  // it was a bar and no prompt; its first state stays as a line
  Bar& bar = bars_[source.order];
  if (bar.unfinished) {
    bar.text += text;
  } else if (!text.empty()) {  // a '\r' alone only returns to the beginning
    bar.tag = fmt::format("{}{}", timestamp, source.tag);
    bar.text = text;
  }
  bar.unfinished = unfinished;
}

void TerminalText::put_beginning(Source& source, std::string_view text, std::string_view timestamp) {
  if (open_ != &source) {
    begin_line();
    lines_ += timestamp;
    lines_ += source.tag;
  }
  lines_ += text;
  open_ = &source;
}

/// Of another source than the one whose line is open.
void TerminalText::begin_line() {
  if (open_ == nullptr) return;
  open_->is_cut = true;
  end_line();
}

void TerminalText::end_line() {
  lines_.push_back('\n');
  open_ = nullptr;
}

void TerminalText::settle_bar(int order) {
  const auto bar = bars_.find(order);
  if (bar == bars_.end()) return;
  changed_ = true;
  begin_line();
  if (!bar->second.text.empty()) lines_ += fmt::format("{}{}\n", bar->second.tag, bar->second.text);
  bars_.erase(bar);
}

std::vector<std::string> TerminalText::rows() const {
  if (height_ == 0 || open_ != nullptr) return {};
  std::vector<std::string> result;
  for (const auto& [order, bar] : bars_) {
    if (!bar.text.empty()) result.push_back(bar.tag + bar.text);
  }
  const auto most = static_cast<std::size_t>(std::max(1, height_ / 2));  // the lines above must stay visible
  if (result.size() > most) {
    const std::size_t hidden = result.size() - most + 1;
    result.resize(most - 1);
    result.push_back(fmt::format("... {} more progress bars", hidden));
  }
  if (!status_.empty()) result.push_back(status_);
  return result;
}

void TerminalText::write_to(std::string& out) {
  if (!std::exchange(changed_, false)) return;
  if (drawn_rows_ > 1) out += fmt::format("\x1b[{}A", drawn_rows_ - 1);
  if (drawn_rows_ > 0) out += "\r\x1b[J";
  out += lines_;
  lines_.clear();
  const std::vector<std::string> all = rows();
  drawn_rows_ = all.size();
  if (all.empty()) return;
  out += "\x1b[?7l";  // a row that is too long is cut
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (i > 0) out += "\r\n";
    out += all[i];
    if (all[i].find(kEscape) != std::string::npos) out += "\x1b[0m";
  }
  out += "\x1b[?7h";
}

}  // namespace runjob
