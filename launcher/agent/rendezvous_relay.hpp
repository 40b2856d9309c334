#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include <boost/asio/any_io_executor.hpp>

#include "launcher/agent/rank_processes.hpp"
#include "launcher/channel/frame_writer.hpp"
#include "launcher/channel/messages.hpp"
#include "rendezvous/server/http_server.hpp"

namespace runjob {

/// The rendezvous as the ranks of one host reach it: a local socket. Answers joins itself, since the launch message has
/// all that a rank asks for, and relays the other requests to the launcher.
/// Owner    the agent. Outlives the loop's run.
/// Threads  the loop's one thread.
class RendezvousRelay {
 public:
  /// The references outlive this object.
  RendezvousRelay(boost::asio::any_io_executor executor, const RankProcesses& ranks, FrameWriter<ToLauncher>& frames);

  /// Listens at `socket` from now on. Errors  those of rendezvous::HttpServer.
  void open(const std::string& socket);
  void close() { server_.reset(); }

  /// The launcher's answer to one of the requests.
  void on_reply(RelayedReply message);
  /// Answers all requests, those that wait and those to come, with the loss of the launcher.
  void on_launcher_lost();

 private:
  void on_request(rendezvous::Request request, rendezvous::Reply reply);
  void join(const rendezvous::Request& request, const rendezvous::Reply& reply);

  const boost::asio::any_io_executor executor_;
  const RankProcesses& ranks_;
  FrameWriter<ToLauncher>& frames_;
  std::optional<rendezvous::HttpServer> server_;
  std::map<std::int64_t, rendezvous::Reply> waiting_;  // by request id
  std::int64_t next_request_ = 0;
  bool launcher_lost_ = false;
};

}  // namespace runjob
