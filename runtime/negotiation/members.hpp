#pragma once

#include <cstddef>
#include <initializer_list>
#include <optional>
#include <string>
#include <vector>

namespace runjob::runtime {

/// The ranks of an engine. Inside the engine they are counted from 0 without gaps; in messages each has its rank in the
/// job and its host. A value.
class Members {
 public:
  Members() = default;
  /// All ranks of a job, by rank. Implicit: the hosts are everything that is to be known.
  Members(std::vector<std::string> hosts);
  Members(std::initializer_list<std::string> hosts) : Members(std::vector<std::string>(hosts)) {}
  /// The ranks of a process set: `ranks` in the job, in the order of the set, and the host of each.
  Members(int process_set, std::vector<int> ranks, std::vector<std::string> hosts);

  std::size_t size() const { return hosts_.size(); }
  int process_set() const { return process_set_; }  ///< 0: all ranks of the job
  int rank(int index) const { return ranks_[static_cast<std::size_t>(index)]; }
  const std::string& host(int index) const { return hosts_[static_cast<std::size_t>(index)]; }
  /// The index of the member with this rank in the job; nullopt for none.
  std::optional<int> index_of(int rank) const;

 private:
  int process_set_ = 0;
  std::vector<int> ranks_;
  std::vector<std::string> hosts_;
};

/// "rank 3 on s4".
std::string rank_text(int index, const Members& members);

/// Lists which ranks have which of `texts`, which are by member: "[2, 3] on ranks 0 (a), 1 (a); [3, 2] on rank 2 (b)".
std::string values_text(const std::vector<std::string>& texts, const Members& members);

}  // namespace runjob::runtime
