#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>

#include <boost/asio/any_io_executor.hpp>

#include "launcher/agent/rank_processes.hpp"
#include "launcher/channel/frame_writer.hpp"
#include "launcher/channel/messages.hpp"
#include "rendezvous/server/http_server.hpp"

namespace runjob {

/// The rendezvous as the ranks of one host reach it: a local socket. Answers joins itself, since the launch message has
/// all that a rank asks for, and relays the other requests to the launcher. In an elastic job it relays the joins of
/// ranks that are ready for the next generation, and answers questions for a notice.
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
  /// Answers the questions that wait for a notice.
  void on_notice(rendezvous::Notice notice);
  /// Answers all requests, those that wait and those to come, with the loss of the launcher.
  void on_launcher_lost();

 private:
  void on_request(rendezvous::Request request, rendezvous::Reply reply);
  void relay(rendezvous::Request request, rendezvous::Reply reply);
  void join(rendezvous::Request request, rendezvous::Reply reply);
  void ask_for_notice(const rendezvous::Request& request, rendezvous::Reply reply);
  void answer_notice(int process);

  const boost::asio::any_io_executor executor_;
  const RankProcesses& ranks_;
  FrameWriter<ToLauncher>& frames_;
  std::optional<rendezvous::HttpServer> server_;
  std::map<std::int64_t, rendezvous::Reply> waiting_;  // by request id
  std::int64_t next_request_ = 0;
  rendezvous::Notice notice_;                        // the last one
  std::set<int> entered_;                            // the processes that have asked for a notice
  std::map<int, rendezvous::Reply> notice_waiters_;  // by process
  bool launcher_lost_ = false;
};

}  // namespace runjob
