#include "launcher/agent/address_prober.hpp"

#include <utility>

namespace runjob {

AddressProber::AddressProber(boost::asio::any_io_executor executor, FrameWriter& frames)
    : executor_(std::move(executor)), frames_(frames) {}

void AddressProber::on_frame(FrameType type, std::string_view payload) {
  if (type == FrameType::kProbeListen) {
    listener_.emplace(executor_, decode<ProbeListen>(payload));
    return frames_.send_control(FrameType::kProbeListening, -1, encode(listener_->listening()));
  }
  if (type == FrameType::kProbeConnect) {
    round_.emplace(executor_, decode<ProbeConnect>(payload), [this](const ProbeResults& results) {
      frames_.send_control(FrameType::kProbeResults, -1, encode(results));
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
