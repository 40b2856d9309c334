#include "hostfile/grid_engine_allocation.hpp"

#include "hostfile/merge_hosts.hpp"
#include "hostfile/node_lines.hpp"

namespace runjob {
namespace {

/// A column that is not read: the queue, and the processors.
void skip_column(TextCursor& cursor) {
  cursor.take_while([](char c) { return c != ' ' && c != '\t'; });
  cursor.skip_blanks();
}

}  // namespace

std::vector<Host> parse_grid_engine_hosts(std::string_view text, std::string_view source) {
  return parse_node_lines(text, source, [](TextCursor& cursor) {
    Host host;
    host.name = take_node_name(cursor);
    cursor.skip_blanks();
    host.slots = cursor.take_number("the number of slots after the host", 1, kMaxSlots);
    if (!cursor.at_end() && cursor.peek() != ' ' && cursor.peek() != '\t')
      cursor.expected("a space after the number of slots");
    cursor.skip_blanks();
    skip_column(cursor);
    skip_column(cursor);
    return host;
  });
}

}  // namespace runjob
