#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <string_view>

#include <boost/asio/awaitable.hpp>

#include "launcher/channel/channel.hpp"
#include "launcher/job/host_connector.hpp"
#include "launcher/remote/agent_file.hpp"

/// How a program of ours comes to run on a host that has only a POSIX shell. A command is given to the user's login
/// shell there; it runs the agent of our build from the user's cache directory. When that is not there it asks for it
/// on its standard output, takes it from its standard input, checks it, and moves it to its name in one step, so
/// launches at the same time do not disturb each other. agent-channel.md has the words of this exchange.
///
/// The folder and the agent must belong to the user, others may not write to them, and neither may be a link: otherwise
/// another user of that host could put his own program there. This is checked at each start, upload and removal.
namespace runjob {

/// The command, for any login shell (also csh and fish): one line without quotes but the outer ones. An upload that is
/// not complete within `upload_limit` is removed by the host itself, which a cut network may have left alone with it.
std::string bootstrap_command(const AgentFile& agent, std::chrono::milliseconds upload_limit);

/// Removes what bootstrap_command() has left in that directory, of every version.
std::string clean_cache_command();

/// To be called on a channel to bootstrap_command(): uploads the agent if it is asked for, returns once it runs.
/// Errors  Error(kConnect) with the reason: no space, a directory where nothing may be executed or that is not the
///         user's alone, another kind of machine, a shell that printed something else.
boost::asio::awaitable<ReadyChannel> bootstrap_agent(std::unique_ptr<Channel> channel, AgentFile agent);

/// To be called on a channel to clean_cache_command(): returns once the cache is clean.
/// Errors  Error(kConnect) with the reason.
boost::asio::awaitable<void> cache_cleaned(std::unique_ptr<Channel> channel);

}  // namespace runjob
