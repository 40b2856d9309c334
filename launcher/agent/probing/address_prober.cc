#include "launcher/agent/probing/address_prober.hpp"

#include <utility>

#include "launcher/network/interface_facts.hpp"

namespace runjob {

AddressProber::AddressProber(boost::asio::any_io_executor executor, FrameWriter<ToLauncher>& frames)
    : executor_(std::move(executor)), frames_(frames) {}

void AddressProber::on_frame(ToAgent type, std::string_view payload) {
  if (type == ToAgent::kProbeListen) {
    const auto message = decode<ProbeListen>(payload);
    listener_.emplace(executor_, message);
    ProbeListening answer = listener_->listening();
    answer.probe = message.probe;
    if (message.asks_for_networks) answer.networks = network_facts();
    return frames_.send_control(ToLauncher::kProbeListening, -1, encode(answer));
  }
  if (type == ToAgent::kProbeConnect) {
    const auto message = decode<ProbeConnect>(payload);
    round_.emplace(executor_, message, [this, probe = message.probe](const ProbeResults& results) {
      frames_.send_control(ToLauncher::kProbeResults, -1, encode(ProbeResults{results.outcomes, probe}));
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
