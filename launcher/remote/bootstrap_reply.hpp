#pragma once

#include <string>
#include <string_view>

namespace runjob {

/// The state of what a host has printed so far in answer to bootstrap_command() or clean_cache_command(). Its login
/// shell may have printed anything before.
struct BootstrapReply {
  enum class Kind {
    kUnfinished,
    kMissing,  ///< it asks for the agent; `text`: output of `uname -s`, `-m` and `-r`
    kFailed,   ///< `text`: the reason
    kAgent,    ///< the agent runs, and has sent the beginning of its stream
    kCleaned,  ///< the cache is clean
  };
  Kind kind = Kind::kUnfinished;
  std::string text = {};
};

/// Pure: a host may send any bytes.
BootstrapReply read_bootstrap_reply(std::string_view received);

/// Errors  Error(kConnect) when an agent for `machine` cannot run on `system`, the text of kMissing.
void check_system(std::string_view system, const std::string& machine);

/// The beginning of what a host has printed, on one line.
std::string quoted(std::string_view received);

}  // namespace runjob
