#include "hostfile/pbs_allocation.hpp"

#include "hostfile/node_lines.hpp"

namespace runjob {

std::vector<Host> parse_pbs_nodes(std::string_view text, std::string_view source) {
  return parse_node_lines(text, source, [](TextCursor& cursor) {
    Host host;
    host.name = take_node_name(cursor);
    return host;
  });
}

}  // namespace runjob
