#include "launcher/ssh/message_lines.hpp"

#include <algorithm>

namespace runjob {
namespace {

constexpr std::size_t kLongest = 4096;

}  // namespace

void MessageLines::add(std::string_view text) {
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    const std::size_t bytes = std::min(std::min(end, text.size()), kLongest - partial_.size());
    partial_ += text.substr(0, bytes);
    text.remove_prefix(bytes);
    const bool at_end = !text.empty() && text.front() == '\n';
    if (at_end) text.remove_prefix(1);
    if (at_end || partial_.size() == kLongest) finish();
  }
}

void MessageLines::finish() {
  std::string line = std::move(partial_);
  partial_.clear();
  if (!line.empty() && line.back() == '\r') line.pop_back();
  if (line.empty()) return;
  if (on_line_) on_line_(line);
  last_ = std::move(line);
}

}  // namespace runjob
