#include "hostfile/lsf_allocation.hpp"

#include "hostfile/merge_hosts.hpp"
#include "hostfile/node_lines.hpp"

namespace runjob {

std::vector<Host> parse_lsf_hosts(std::string_view text, std::string_view source) {
  TextCursor cursor(text, source, 0);
  HostMerger merger;
  cursor.skip_blanks();
  do {
    const std::size_t start = cursor.position();
    Host host;
    host.name = take_node_name(cursor);
    cursor.skip_blanks();
    host.slots = cursor.take_number("the number of slots after the host", 1, kMaxSlots);
    add_node(merger, cursor, start, host);
    if (!cursor.at_end() && cursor.peek() != ' ' && cursor.peek() != '\t')
      cursor.expected("a space after the number of slots");
    cursor.skip_blanks();
  } while (!cursor.at_end());
  return merger.hosts();
}

}  // namespace runjob
