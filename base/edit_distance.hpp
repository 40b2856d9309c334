#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace runjob {

/// The least number of insertions, deletions and substitutions that turn `a` into `b` (Levenshtein distance).
/// Cost  O(|a| |b|) time, O(|b|) memory.
int edit_distance(std::string_view a, std::string_view b);

/// The candidate nearest to `word`, or "" when none is near enough to be what was meant.
std::string nearest(std::string_view word, const std::vector<std::string>& candidates);

}  // namespace runjob
