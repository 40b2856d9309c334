#include "launcher/agent/probing/address_prober.hpp"

#include <utility>

namespace runjob {

AddressProber::AddressProber(boost::asio::any_io_executor executor, FrameWriter<ToLauncher>& frames)
    : executor_(std::move(executor)), frames_(frames) {}

void AddressProber::on_frame(ToAgent type, std::string_view payload) {
  if (type == ToAgent::kProbeListen) {
    listener_.emplace(executor_, decode<ProbeListen>(payload));
    return frames_.send_control(ToLauncher::kProbeListening, -1, encode(listener_->listening()));
  }
  if (type == ToAgent::kProbeConnect) {
    round_.emplace(executor_, decode<ProbeConnect>(payload), [this](const ProbeResults& results) {
      frames_.send_control(ToLauncher::kProbeResults, -1, encode(results));
    });
    return;
  }
  stop();
}

void AddressProber::stop() {
  listener_.reset();
  round_.reset();
}

}  // namespace runjob
