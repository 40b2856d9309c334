#include "launcher/output/output_text.hpp"

#include <cstring>
#include <utility>

#include "base/screen_text.hpp"

namespace runjob {
namespace {

/// Finds the ends of lines; remembers the next '\n', so that many '\r' before it do not search for it again.
class LineEnds {
 public:
  explicit LineEnds(std::string_view bytes) : bytes_(bytes) {}

  /// The position after the first '\n' or '\r' at or after `from`; npos when there is none.
  std::size_t next(std::size_t from) {
    if (newline_ == kUnknown || (newline_ != std::string_view::npos && newline_ < from))
      newline_ = bytes_.find('\n', from);
    const std::size_t limit = newline_ == std::string_view::npos ? bytes_.size() : newline_;
    if (const void* found = std::memchr(bytes_.data() + from, '\r', limit - from)) {
      return static_cast<std::size_t>(static_cast<const char*>(found) - bytes_.data()) + 1;
    }
    return newline_ == std::string_view::npos ? newline_ : newline_ + 1;
  }

 private:
  static constexpr std::size_t kUnknown = std::string_view::npos - 1;
  std::string_view bytes_;
  std::size_t newline_ = kUnknown;
};

}  // namespace

void OutputText::feed(Source& source, std::string_view bytes, std::string_view timestamp) {
  if (source.after_cr && !bytes.empty()) {
    source.after_cr = false;
    if (bytes.front() == '\n') {
      put_late_newline(source);
      bytes.remove_prefix(1);
    }
  }
  LineEnds ends(bytes);
  std::size_t from = 0;
  while (from < bytes.size()) {
    std::size_t end = ends.next(from);
    if (end == std::string_view::npos) break;
    const bool carriage_return = bytes[end - 1] == '\r';
    if (carriage_return && end < bytes.size() && bytes[end] == '\n') ++end;
    source.after_cr = carriage_return && end == bytes.size() && bytes[end - 1] == '\r';
    std::string_view piece = bytes.substr(from, end - from);
    if (!source.held.empty()) {
      source.held += piece;
      piece = source.held;
    }
    if (const bool is_cut = std::exchange(source.is_cut, false); !is_cut || piece != "\n")
      put(source, piece, timestamp);
    source.held.clear();
    from = end;
  }
  source.held += bytes.substr(from);
  if (source.held.size() > kMaxHeldBytes) flush(source, timestamp);
}

void OutputText::flush(Source& source, std::string_view timestamp) {
  const std::size_t whole = whole_characters(source.held);
  put_held(source, whole, timestamp);
}

void OutputText::put_held(Source& source, std::size_t bytes, std::string_view timestamp) {
  if (bytes == 0) return;
  source.is_cut = false;
  put(source, std::string_view(source.held).substr(0, bytes), timestamp);
  source.held.erase(0, bytes);
}

void OutputText::end(Source& source, std::string_view timestamp) {
  put_held(source, source.held.size(), timestamp);
  put_end(source);
}

}  // namespace runjob
