#pragma once

#include <optional>
#include <string>
#include <string_view>

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>

#include "launcher/channel/bounded_listener.hpp"
#include "launcher/elastic/host_source.hpp"

namespace runjob {

/// Carries out the requests of `runjob resize` while an elastic job runs. It serves processes of the same user only
/// (SO_PEERCRED). The connection of any other process is closed before anything is read from it.
/// Bounds   those of BoundedListener: 64 connections at a time, ten seconds for each, and 64 KiB for a request.
/// Owner    as HostSource: the supervisor. The socket's file exists from start() to stop(); start() also removes those
///          of launchers that were killed.
/// Threads  the executor's one thread.
/// Errors   none is thrown. A request that cannot be carried out gets its reason as the reply.
class ResizeSocket : public HostSource {
 public:
  /// `folder`: see resize_folder(). `changes` outlives this object.
  ResizeSocket(boost::asio::any_io_executor executor, std::string folder, std::string job_id, HostChanges& changes);

  /// A folder that cannot be used is a warning: the job runs without the socket.
  void start() override;
  void stop() override;

 private:
  void remove_old_sockets() const;
  boost::asio::awaitable<void> serve(StreamSocket socket);
  std::string answer(std::string_view line);

  const boost::asio::any_io_executor executor_;
  const std::string folder_;
  const std::string job_id_;
  HostChanges& changes_;
  std::optional<BoundedListener> listener_;  // from start() to stop()
  std::string path_;
};

}  // namespace runjob
