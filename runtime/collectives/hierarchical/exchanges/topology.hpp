#pragma once

#include <cstddef>
#include <vector>

namespace runjob::runtime {

/// Which ranks share a host, as one rank sees it. Hosts are numbered in the order of their lowest ranks, the ranks of a
/// host by local rank, in ascending order. Local rank 0 is the host's leader. The ranks of all hosts with the same
/// local rank are a column.
/// Threads  any: it never changes.
class Topology {
 public:
  /// The most hosts between which every rank of a column is connected with each other one.
  static constexpr int kMostMeshed = 16;

  /// `host_of_rank`: any numbers, equal for ranks of one host. `names`: the ranks' numbers in their job; empty when
  /// they are the same as here.
  Topology(int rank, const std::vector<int>& host_of_rank, std::vector<int> names = {});

  int rank() const { return rank_; }
  int size() const { return static_cast<int>(host_.size()); }
  int hosts() const { return static_cast<int>(ranks_.size()); }
  int host() const { return host_of(rank_); }
  int local_rank() const { return local_rank_of(rank_); }
  int local_size() const { return static_cast<int>(ranks(host()).size()); }

  /// The rank's number in its job, for messages.
  int name(int rank) const { return names_.empty() ? rank : names_.at(static_cast<std::size_t>(rank)); }

  /// True for a rank of this rank's host.
  bool is_here(int rank) const { return host_of(rank) == host(); }
  int host_of(int rank) const { return host_[static_cast<std::size_t>(rank)]; }
  int local_rank_of(int rank) const { return local_rank_[static_cast<std::size_t>(rank)]; }
  const std::vector<int>& ranks(int host) const { return ranks_[static_cast<std::size_t>(host)]; }

  /// The number of columns that have a rank on every host.
  int columns() const;
  /// True if every rank is in a column that reaches all hosts, and each rank of a column is connected with each other
  /// one. Not with many hosts, because the number of connections grows with the square of theirs.
  bool columns_reach_all() const { return hosts() <= kMostMeshed && size() == columns() * hosts(); }
  /// The ranks of a column, by host.
  std::vector<int> column(int local_rank) const;

 private:
  int rank_;
  std::vector<int> names_;
  std::vector<int> host_, local_rank_;   ///< by rank
  std::vector<std::vector<int>> ranks_;  ///< by host
};

/// The hosts that recursive doubling joins: those of the hypercube that is the largest below `hosts`. Each host beyond
/// it is the companion of one in the cube.
struct Cube {
  explicit Cube(int hosts);

  int hosts, size;  ///< size: a power of two

  bool contains(int host) const { return host < size; }
  /// The other host of a pair of which one is beyond the cube; -1 for none.
  int companion(int host) const;
  /// All hosts with which `host` exchanges messages, ascending.
  std::vector<int> neighbours(int host) const;
};

}  // namespace runjob::runtime
