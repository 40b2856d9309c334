#include "hostfile/node_lines.hpp"

#include <fmt/format.h>

#include "base/error.hpp"
#include "hostfile/host_pattern.hpp"
#include "hostfile/text_lines.hpp"

namespace runjob {

std::string take_node_name(TextCursor& cursor) {
  const std::size_t start = cursor.position();
  const std::string_view word = cursor.rest().substr(0, cursor.rest().find_first_of(" \t"));
  if (word.find('@') != word.npos || (word.find('[') != word.npos && word.front() != '['))
    cursor.fail_at(start, fmt::format("expected the name of one host, found {}", show_text(word)));
  HostPattern pattern = take_host_pattern(cursor, 1);
  return std::move(pattern.names.front());
}

void add_node(HostMerger& merger, const TextCursor& cursor, std::size_t start, const Host& host) {
  const std::string problem = merger.add(host);
  if (!problem.empty()) cursor.fail_at(start, problem);
  if (merger.hosts().size() > kMaxHosts) cursor.fail_at(start, fmt::format("expected at most {} hosts", kMaxHosts));
}

std::vector<Host> parse_node_lines(std::string_view text, std::string_view source,
                                   const std::function<Host(TextCursor&)>& take) {
  HostMerger merger;
  for_each_line(text, source, [&](TextCursor& cursor) {
    cursor.skip_blanks();
    if (cursor.at_end()) return;
    const std::size_t start = cursor.position();
    const Host host = take(cursor);
    cursor.skip_blanks();
    if (!cursor.at_end()) cursor.expected("the end of the line");
    add_node(merger, cursor, start, host);
  });
  if (merger.mentions() == 0)
    throw Error(Errc::kHostfile, fmt::format("{}: expected at least one host, found none", source));
  return merger.hosts();
}

}  // namespace runjob
