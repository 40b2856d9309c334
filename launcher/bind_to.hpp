#pragma once

#include <cstdint>
#include <string_view>

namespace runjob {

/// What a rank is bound to, in Open MPI's words.
enum class BindTo : std::uint8_t {
  kNone,    ///< it keeps the affinity that its agent has
  kCore,    ///< whole cores that no other rank has: its even share of the host's
  kNuma,    ///< its share of the NUMA nodes, at least one, which ranks share when they are more
  kSocket,  ///< the same with sockets
};

/// Errors  Error(kUsage) naming `what`.
BindTo parse_bind_to(std::string_view text, std::string_view what);

/// "core".
std::string_view to_string(BindTo bind_to);

}  // namespace runjob
