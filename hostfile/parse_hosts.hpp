#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "hostfile/allocation.hpp"

/// The two grammars of host lists. Pure functions of text; safe on any bytes.
/// Errors  Error(kHostfile) naming source, line, column and what was expected:
///         `-H: column 9: expected a number of slots after ':', found 'x'`, `hosts.txt: line 3, column 12:
///         ...`.
/// A host named twice (same name, user and port) adds its slots, at the place of its first mention; see
/// hostfile/merge_hosts.hpp for its other options.
/// Bounds  100,000 hosts in a list, 65,536 slots on a host, names of 253 characters.
namespace runjob {

/// The text of -H: `host`, `host:slots`, `user@host:slots`, `[v6addr]:slots`, ranges `s[1-4,7]:4` (zero
/// padding kept: `n[01-12]`), separated by commas. No number means one slot.
std::vector<Host> parse_host_list(std::string_view text, std::string_view source = "-H");

/// A hostfile: one host (or range) per line, then options `slots=4 port=2222 user=me identity=PATH gpus=0,2`,
/// also the short form `host:4`; `#` starts a comment; blank lines, CR LF and blanks around '=' are fine. No
/// slots means one; `gpus` alone means as many slots as GPUs. At least one host.
std::vector<Host> parse_hostfile(std::string_view text, std::string_view source);

/// The output of a host discovery script: a hostfile, possibly without any host, in which a host without a number has
/// `slots_per_host` slots. A line that occurs twice counts once, as for horovodrun.
std::vector<Host> parse_discovered_hosts(std::string_view text, std::string_view source, int slots_per_host);

}  // namespace runjob
