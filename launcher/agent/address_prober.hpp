#pragma once

#include <optional>
#include <string_view>

#include <boost/asio/any_io_executor.hpp>

#include "launcher/agent/probe_listener.hpp"
#include "launcher/agent/probe_round.hpp"
#include "launcher/frame_writer.hpp"

namespace runjob {

/// The agent's part in finding an address by which the hosts reach each other: does what the launcher's probe frames say and
/// sends what comes of it.
/// Threads  the loop's one thread.
class AddressProber {
 public:
  /// `frames` outlives this object.
  AddressProber(boost::asio::any_io_executor executor, FrameWriter& frames);

  /// One of kProbeListen, kProbeConnect, kProbeEnd. Errors  Error(kProtocol).
  void on_frame(FrameType type, std::string_view payload);

  /// Closes all sockets.
  void stop();

 private:
  boost::asio::any_io_executor executor_;
  FrameWriter& frames_;
  std::optional<ProbeListener> listener_;
  std::optional<ProbeRound> round_;
};

}  // namespace runjob
