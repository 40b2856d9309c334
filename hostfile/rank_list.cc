#include "hostfile/rank_list.hpp"

#include <algorithm>
#include <charconv>

#include <fmt/format.h>

#include "base/error.hpp"

namespace runjob {
namespace {

std::string_view without_blanks(std::string_view text) {
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
  return text;
}

int parse_rank(std::string_view text, std::string_view what, std::string_view list, int size) {
  int rank = -1;
  text = without_blanks(text);
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), rank);
  if (error != std::errc() || end != text.data() + text.size() || rank < 0)
    throw Error(Errc::kUsage, fmt::format("{}: '{}' is not a list of ranks such as 0,4-7", what, list));
  if (rank >= size)
    throw Error(Errc::kUsage,
                fmt::format("{}: there is no rank {} in a job of {}; the last one is {}", what, rank, size, size - 1));
  return rank;
}

}  // namespace

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

std::vector<int> parse_rank_list(std::string_view text, std::string_view what, int size) {
  std::vector<int> ranks;
  for (std::string_view rest = text;;) {
    const std::size_t comma = rest.find(',');
    const std::string_view part = rest.substr(0, comma);
    const std::size_t dash = part.find('-');
    const int first = parse_rank(part.substr(0, dash), what, text, size);
    const int last = dash == std::string_view::npos ? first : parse_rank(part.substr(dash + 1), what, text, size);
    if (last < first)
      throw Error(Errc::kUsage,
                  fmt::format("{}: the range {}-{} is empty; write the smaller rank first", what, first, last));
    for (int rank = first; rank <= last; ++rank) ranks.push_back(rank);
    if (comma == std::string_view::npos) break;
    rest.remove_prefix(comma + 1);
  }
  std::sort(ranks.begin(), ranks.end());
  ranks.erase(std::unique(ranks.begin(), ranks.end()), ranks.end());
  return ranks;
}

}  // namespace runjob
