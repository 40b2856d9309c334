#include "hostfile/parse_hosts.hpp"

#include <set>

#include <fmt/format.h>

#include "base/error.hpp"
#include "hostfile/host_options.hpp"
#include "hostfile/host_pattern.hpp"
#include "hostfile/merge_hosts.hpp"
#include "hostfile/text_cursor.hpp"
#include "hostfile/text_lines.hpp"

namespace runjob {
namespace {

constexpr std::string_view kSlotsAfterColon = "a number of slots after ':'";

/// `:slots` when it is next. A second ':' is an IPv6 address without its brackets.
std::optional<int> take_slots(TextCursor& cursor, std::size_t start) {
  if (cursor.peek() != ':') return std::nullopt;
  const std::string_view word = cursor.rest().substr(0, cursor.rest().find_first_of(", \t#"));
  if (word.find(':', 1) != std::string_view::npos)
    cursor.fail_at(start, "expected an IPv6 address in brackets, as in [fe80::1]:2, found more than one ':'");
  cursor.accept(':');
  return cursor.take_number(kSlotsAfterColon, 1, kMaxSlots);
}

void add_hosts(HostMerger& merger, const TextCursor& cursor, std::size_t start, const std::vector<std::string>& names,
               Host host) {
  for (const std::string& name : names) {
    host.name = name;
    const std::string problem = merger.add(host);
    if (!problem.empty()) cursor.fail_at(start, problem);
  }
}

/// One line of a hostfile, comment and line end already known to be harmless to the grammar.
void parse_hostfile_line(TextCursor& cursor, HostMerger& merger, int default_slots = 1) {
  cursor.skip_blanks();
  if (cursor.at_end() || cursor.peek() == '#') return;
  const std::size_t start = cursor.position();
  const HostPattern pattern = take_host_pattern(cursor, kMaxHosts - merger.mentions());
  HostOptions options;
  options.user = pattern.user;
  options.slots = take_slots(cursor, start);
  take_host_options(cursor, options);
  Host host;
  host.slots = options.slots.value_or(options.gpus ? static_cast<int>(options.gpus->size()) : default_slots);
  host.user = options.user;
  host.port = options.port;
  host.identity = options.identity;
  host.gpus = options.gpus;
  add_hosts(merger, cursor, start, pattern.names, host);
}

}  // namespace

std::vector<Host> parse_host_list(std::string_view text, std::string_view source) {
  TextCursor cursor(text, source, 0);
  HostMerger merger;
  do {
    cursor.skip_blanks();
    const std::size_t start = cursor.position();
    const HostPattern pattern = take_host_pattern(cursor, kMaxHosts - merger.mentions());
    Host host;
    host.user = pattern.user;
    host.slots = take_slots(cursor, start).value_or(1);
    add_hosts(merger, cursor, start, pattern.names, host);
    cursor.skip_blanks();
  } while (cursor.accept(','));
  if (!cursor.at_end()) cursor.expected("',' and another host, or the end of the list");
  return merger.hosts();
}

std::vector<Host> parse_hostfile(std::string_view text, std::string_view source) {
  constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";
  if (text.substr(0, kByteOrderMark.size()) == kByteOrderMark) text.remove_prefix(kByteOrderMark.size());
  HostMerger merger;
  for_each_line(text, source, [&](TextCursor& cursor) { parse_hostfile_line(cursor, merger); });
  if (merger.mentions() == 0)
    throw Error(Errc::kHostfile, fmt::format("{}: expected at least one host, found none", source));
  return merger.hosts();
}

std::vector<Host> parse_discovered_hosts(std::string_view text, std::string_view source, int slots_per_host) {
  HostMerger merger;
  std::set<std::string_view> seen;
  for_each_line(text, source, [&](TextCursor& cursor) {
    if (seen.insert(cursor.rest()).second) parse_hostfile_line(cursor, merger, slots_per_host);
  });
  return merger.hosts();
}

}  // namespace runjob
