#pragma once

#include <optional>
#include <string>
#include <vector>

#include "hostfile/text_cursor.hpp"

namespace runjob {

/// The options that may follow a host's name on its line of a hostfile.
struct HostOptions {
  std::optional<int> slots;
  std::string user;  ///< "" if not given
  std::optional<int> port;
  std::string identity;  ///< "" if not given
  std::optional<std::vector<int>> gpus;
};

/// Reads `name=value` options up to the end of the line or a '#': slots, user, port, identity, gpus, and Open MPI's
/// max_slots (or max-slots). max_slots is checked against slots and otherwise ignored, because no host ever gets more
/// ranks than slots. Blanks around '=' are allowed; an identity with blanks or '#' needs double quotes; gpus is a list
/// such as 0,2,4-7. On entry `options` has the values from before on the line: `user@` and `:slots`.
/// Errors  Error(kHostfile), also for an option given twice and for an unknown one, naming the nearest.
void take_host_options(TextCursor& cursor, HostOptions& options);

}  // namespace runjob
