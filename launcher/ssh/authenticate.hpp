#pragma once

#include <boost/asio/awaitable.hpp>

#include "launcher/ssh/files/ssh_target.hpp"
#include "launcher/ssh/key_agent.hpp"
#include "launcher/ssh/key_choice.hpp"
#include "launcher/ssh/ssh_session.hpp"

namespace runjob {

/// Logs in with the first of `keys` that the host accepts, without asking anybody anything.
/// `agent` is the one that holds the agent's keys among them.
/// Errors  Error(kAuth) that lists what was tried and says what to do; SshProgramNeeded when ssh has more to try.
boost::asio::awaitable<void> authenticate(SshSession& session, KeyAgent& agent, const SshTarget& target,
                                          const KeyChoice& keys);

}  // namespace runjob
