#pragma once

#include <chrono>
#include <memory>
#include <string>

#include <boost/asio/any_io_executor.hpp>

#include "hostfile/allocation.hpp"
#include "launcher/channel/channel.hpp"
#include "launcher/channel/remote_message.hpp"
#include "launcher/job_spec/ssh_options.hpp"

namespace runjob {

/// Starts the system's ssh (or the program that `options` names, with ssh's options) to run `remote_command` on `host`.
/// The channel is that command's standard input and output. The program never asks for anything: batch mode, no
/// terminal. Returns at once. A refused connection is the end of the stream, and last_message() gives the reason.
/// Threads  the loop's one thread. The program is killed when this thread ends or the channel is destroyed.
/// Errors   Error(kUnavailable) when the program cannot be executed.
std::unique_ptr<Channel> start_ssh_program(boost::asio::any_io_executor executor, const Host& host,
                                           const SshOptions& options, const std::string& remote_command,
                                           RemoteMessage on_message);

}  // namespace runjob
