#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace runjob {

/// Ranks as people write them: "3", "0-2, 5". Any order, no rank twice.
std::string rank_list(std::vector<int> ranks);

/// The same after the right word: "rank 3", "ranks 0-2, 5".
std::string ranks_text(std::vector<int> ranks);

/// Reads what rank_list() writes: ranks and ranges of a job of `size` ranks. Sorted, each once.
/// Errors  Error(kUsage) naming `what`.
std::vector<int> parse_rank_list(std::string_view text, std::string_view what, int size);

}  // namespace runjob
