#include "hostfile/slurm_hostlist.hpp"

#include <fmt/format.h>

#include "hostfile/host_pattern.hpp"
#include "hostfile/merge_hosts.hpp"
#include "hostfile/text_cursor.hpp"

namespace runjob {
namespace {

/// `(x3)` when it is next.
int take_repetitions(TextCursor& cursor) {
  if (!cursor.accept('(')) return 1;
  if (!cursor.accept('x')) cursor.expected("'x' after '(', as in 2(x3)");
  const int count = cursor.take_number("a number after '(x', as in 2(x3)", 1, static_cast<int>(kMaxHosts));
  if (!cursor.accept(')')) cursor.expected("')' after the number, as in 2(x3)");
  return count;
}

}  // namespace

std::vector<std::string> parse_slurm_hostlist(std::string_view text, std::string_view source) {
  TextCursor cursor(text, source, 0);
  std::vector<std::string> hosts;
  do {
    const std::size_t start = cursor.position();
    HostPattern pattern = take_host_pattern(cursor, kMaxHosts - hosts.size());
    if (!pattern.user.empty()) cursor.fail_at(start, "expected the name of a node, found a user");
    hosts.insert(hosts.end(), std::make_move_iterator(pattern.names.begin()),
                 std::make_move_iterator(pattern.names.end()));
  } while (cursor.accept(','));
  if (!cursor.at_end()) cursor.expected("',' after a node");
  return hosts;
}

std::vector<int> parse_slurm_counts(std::string_view text, std::string_view source) {
  TextCursor cursor(text, source, 0);
  std::vector<int> counts;
  do {
    const std::size_t start = cursor.position();
    const int count = cursor.take_number("a number for a node, as in 2(x3),1", 0, kMaxSlots);
    const auto repetitions = static_cast<std::size_t>(take_repetitions(cursor));
    if (repetitions > kMaxHosts - counts.size())
      cursor.fail_at(start, fmt::format("expected numbers for at most {} nodes", kMaxHosts));
    counts.insert(counts.end(), repetitions, count);
  } while (cursor.accept(','));
  if (!cursor.at_end()) cursor.expected("',' after a number");
  return counts;
}

}  // namespace runjob
