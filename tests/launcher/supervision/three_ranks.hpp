#pragma once

#include <string>
#include <vector>

#include "launcher/supervision/verdict.hpp"

/// A job of three ranks on two hosts, s1 and s2, as the tests of its end need it.
namespace runjob {

inline Allocation two_hosts() {
  Allocation allocation;
  allocation.hosts = {{"s1", 2, "", {}, "", {}}, {"s2", 1, "", {}, "", {}}};
  allocation.placements = {{0, 3, 0, 2, 0, 2, 0}, {1, 3, 1, 2, 0, 1, 0}, {2, 3, 0, 1, 1, 2, 1}};
  return allocation;
}

inline Verdict started() {
  Verdict verdict(two_hosts(), "train");
  for (int rank = 0; rank < 3; ++rank) verdict.rank_started(rank, 100 + rank);
  return verdict;
}

inline Exited with_status(int status) {
  return {status << 8, false, false, 0, 10, 0.1};
}
inline Exited with_signal(int number) {
  return {number, false, false, 0, 10, 0.1};
}
inline std::vector<std::string> no_lines(int) {
  return {};
}

}  // namespace runjob
