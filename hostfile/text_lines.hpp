#pragma once

#include <string_view>

#include "hostfile/text_cursor.hpp"

namespace runjob {

/// Calls use(cursor) for each line of `text`, with a cursor at its beginning. Lines end with LF or CR LF, and are
/// counted from 1 in messages.
template <class Use>
void for_each_line(std::string_view text, std::string_view source, Use use) {
  for (int line_number = 1; !text.empty(); ++line_number) {
    const std::size_t end = text.find('\n');
    std::string_view line = text.substr(0, end);
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    if (!line.empty() && line.back() == '\r') line.remove_suffix(1);
    TextCursor cursor(line, source, line_number);
    use(cursor);
  }
}

}  // namespace runjob
