#pragma once

#include <string>
#include <vector>

#include "hostfile/text_cursor.hpp"

namespace runjob {

/// The most hosts that one host list may name.
inline constexpr std::size_t kMaxHosts = 100'000;

/// One `[user@]name` as written, its ranges expanded.
struct HostPattern {
  std::string user;                ///< "" when there is none
  std::vector<std::string> names;  ///< at least one
};

/// Reads `[user@]name` at the cursor. A name is letters, digits, '.', '_' and '-', with any number of ranges
/// in brackets, of which the last varies fastest: `r[1-2]n[01-12,20]`; zero padding is kept. Or it is an IPv6
/// address in brackets: `[fe80::1%eth0]`, `[::1]`.
/// `max_names` bounds the expansion, which is checked before anything is expanded.
/// Errors  Error(kHostfile) at the place where the text stops being a host.
HostPattern take_host_pattern(TextCursor& cursor, std::size_t max_names = kMaxHosts);

}  // namespace runjob
