#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "hostfile/merge_hosts.hpp"
#include "hostfile/text_cursor.hpp"

/// What the host lists of batch systems have in common.
namespace runjob {

/// One name, as take_host_pattern() reads it: no user, and no range of names.
/// Errors  Error(kHostfile) at the place where the text is no such name.
std::string take_node_name(TextCursor& cursor);

/// Adds a host of the text that begins at `start`; its slots are added to those of an earlier mention.
/// Errors  Error(kHostfile) at `start` when these are too many, or the hosts are.
void add_node(HostMerger& merger, const TextCursor& cursor, std::size_t start, const Host& host);

/// The hosts of a file with one on each line, which `take` reads up to the end of the line. Blank lines, CR LF and
/// blanks at both ends of a line are fine.
/// Errors  those of `take`; Error(kHostfile) when there is no host, or something is left of a line.
std::vector<Host> parse_node_lines(std::string_view text, std::string_view source,
                                   const std::function<Host(TextCursor&)>& take);

}  // namespace runjob
