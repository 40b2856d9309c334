#pragma once

#include <cstdint>
#include <string_view>

namespace runjob {

/// The unit to which a rank is bound, with Open MPI's names.
enum class BindTo : std::uint8_t {
  kNone,    ///< the rank keeps its agent's affinity
  kCore,    ///< its even share of the host's cores, not shared with other ranks
  kNuma,    ///< its share of the NUMA nodes, at least one; ranks share nodes if there are more ranks
  kSocket,  ///< the same with sockets
  /// Its share of the cores, at least one; ranks share cores if there are more ranks. Open MPI's core:overload-allowed.
  kSharedCore,
  kGpu,  ///< the cores near its GPUs; ranks of GPUs with the same near cores share them
};

/// Parses the name of a unit. Open MPI's modifier ":overload-allowed", or ":overload", may follow.
/// Errors  Error(kUsage) naming `what`.
BindTo parse_bind_to(std::string_view text, std::string_view what);

/// "core".
std::string_view to_string(BindTo bind_to);

}  // namespace runjob
