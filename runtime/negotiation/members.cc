#include "runtime/negotiation/members.hpp"

#include <algorithm>
#include <numeric>
#include <utility>

#include <fmt/format.h>

namespace runjob::runtime {

Members::Members(std::vector<std::string> hosts) : ranks_(hosts.size()), hosts_(std::move(hosts)) {
  std::iota(ranks_.begin(), ranks_.end(), 0);
}

Members::Members(int process_set, std::vector<int> ranks, std::vector<std::string> hosts)
    : process_set_(process_set), ranks_(std::move(ranks)), hosts_(std::move(hosts)) {}

std::optional<int> Members::index_of(int rank) const {
  const auto found = std::find(ranks_.begin(), ranks_.end(), rank);
  if (found == ranks_.end()) return std::nullopt;
  return static_cast<int>(found - ranks_.begin());
}

std::string rank_text(int index, const Members& members) {
  return fmt::format("rank {} on {}", members.rank(index), members.host(index));
}

std::string values_text(const std::vector<std::string>& texts, const Members& members) {
  constexpr std::size_t kMostNamed = 8;  // for each value: a line that can still be read
  std::vector<std::string> values;
  for (const std::string& text : texts) {
    if (std::find(values.begin(), values.end(), text) == values.end()) values.push_back(text);
  }
  std::string result;
  for (const std::string& value : values) {
    std::string ranks;
    std::size_t count = 0;
    for (std::size_t rank = 0; rank < texts.size(); ++rank) {
      if (texts[rank] != value || ++count > kMostNamed) continue;
      ranks += fmt::format("{}{} ({})", ranks.empty() ? "" : ", ", members.rank(static_cast<int>(rank)),
                           members.host(static_cast<int>(rank)));
    }
    if (count > kMostNamed) ranks += fmt::format(" and {} more", count - kMostNamed);
    result += fmt::format("{}{} on rank{} {}", result.empty() ? "" : "; ", value, count == 1 ? "" : "s", ranks);
  }
  return result;
}

}  // namespace runjob::runtime
