#pragma once

#include <string>
#include <vector>

namespace runjob {

/// Ranks as people write them: "3", "0-2, 5". Any order, no rank twice.
std::string rank_list(std::vector<int> ranks);

/// The same after the right word: "rank 3", "ranks 0-2, 5".
std::string ranks_text(std::vector<int> ranks);

}  // namespace runjob
