#pragma once

#include <string>
#include <vector>

#include "runtime/collectives/shm/route_table.hpp"

namespace runjob::runtime {

/// What jobs have found out of the ways that messages take (route_table.hpp), for the next one on such a machine: a small file in the
/// user's cache folder. Nothing but time depends on it: a file that is missing, unreadable or another machine's is as good as none.
/// Threads  one; any number of processes, of which the last one to write counts.
class RememberedWays {
 public:
  /// Of `ranks` ranks that share memory on this machine. `directory`: empty for none; made when it is missing.
  RememberedWays(const std::string& directory, int ranks);

  std::vector<RouteTable::Found> read() const;
  /// Adds to what is in the file. Errors  none: then nothing is written.
  void write(const std::vector<RouteTable::Found>& found) const;

  const std::string& path() const { return path_; }

 private:
  std::string machine_;  ///< what the ways depend on, as text
  std::string path_;     ///< empty: none
};

}  // namespace runjob::runtime
