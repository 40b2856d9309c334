#include "launcher/rank_list.hpp"

#include <algorithm>

#include <fmt/format.h>

namespace runjob {

std::string rank_list(std::vector<int> ranks) {
  std::sort(ranks.begin(), ranks.end());
  std::string text;
  for (std::size_t begin = 0; begin < ranks.size();) {
    std::size_t end = begin + 1;
    while (end < ranks.size() && ranks[end] == ranks[end - 1] + 1) ++end;
    if (!text.empty()) text += ", ";
    text += fmt::format("{}", ranks[begin]);
    if (end - begin > 1) text += fmt::format("{}{}", end - begin == 2 ? ", " : "-", ranks[end - 1]);
    begin = end;
  }
  return text;
}

std::string ranks_text(std::vector<int> ranks) {
  const char* word = ranks.size() == 1 ? "rank" : "ranks";
  return fmt::format("{} {}", word, rank_list(std::move(ranks)));
}

}  // namespace runjob
