#pragma once

#include <optional>
#include <string_view>

#include <boost/asio/any_io_executor.hpp>

#include "launcher/agent/probing/probe_listener.hpp"
#include "launcher/agent/probing/probe_round.hpp"
#include "launcher/channel/frame_writer.hpp"

namespace runjob {

/// The agent's part of finding addresses by which the hosts reach each other: carries out the launcher's probe frames
/// and sends the results.
/// Threads  the loop's one thread.
class AddressProber {
 public:
  /// `frames` outlives this object.
  AddressProber(boost::asio::any_io_executor executor, FrameWriter<ToLauncher>& frames);

  /// Handles kProbeListen, kProbeConnect and kProbeEnd.
  /// Errors  Error(kProtocol).
  void on_frame(ToAgent type, std::string_view payload);

  /// Closes all sockets.
  void stop();

 private:
  boost::asio::any_io_executor executor_;
  FrameWriter<ToLauncher>& frames_;
  std::optional<ProbeListener> listener_;
  std::optional<ProbeRound> round_;
};

}  // namespace runjob
