#include "launcher/network/probe_messages.hpp"

#include "launcher/channel/control_message.hpp"
#include "launcher/channel/network_fields.hpp"

namespace runjob {
namespace {

void check_port(int port) {
  constexpr int kMostPort = 65'535;
  if (port < 0 || port > kMostPort) throw Error(Errc::kProtocol, fmt::format("{} is no port", port));
}

}  // namespace

constexpr ProbeOutcome::Kind last(ProbeOutcome::Kind) {
  return ProbeOutcome::Kind::kFailed;
}

void fields(auto& io, Is<ProbeToken> auto& m) {
  io("question", m.question);
  io("answer", m.answer);
}

void check(const ProbeToken& m) {
  if (m.question.size() != ProbeToken::kBytes || m.answer.size() != ProbeToken::kBytes)
    throw Error(Errc::kProtocol, "a probe's token of another size");
}

void fields(auto& io, Is<ProbeListen> auto& m) {
  io("token", m.token);
  io("addresses", m.addresses);
  io("asks_for_networks", m.asks_for_networks);
  io("probe", m.probe);
}

void fields(auto& io, Is<ProbePort> auto& m) {
  io("port", m.port);
  io("errno", m.error_number);
}

void check(const ProbePort& m) {
  check_port(m.port);
}

void fields(auto& io, Is<ProbeListening> auto& m) {
  io("ports", m.ports);
  io("networks", m.networks.interfaces);
  io("probe", m.probe);
}

void fields(auto& io, Is<ProbeTarget> auto& m) {
  io("host", m.host);
  io("address", m.address);
  io("port", m.port);
  io("token", m.token);
}

void check(const ProbeTarget& m) {
  check_port(m.port);
}

void fields(auto& io, Is<ProbeConnect> auto& m) {
  io("targets", m.targets);
  io("limit_ms", m.limit_ms);
  io("probe", m.probe);
}

void fields(auto& io, Is<ProbeOutcome> auto& m) {
  io("outcome", m.kind);
  io("errno", m.error_number);
}

void fields(auto& io, Is<ProbeResults> auto& m) {
  io("outcomes", m.outcomes);
  io("probe", m.probe);
}

template struct ControlMessage<ProbeListen>;
template struct ControlMessage<ProbeListening>;
template struct ControlMessage<ProbeConnect>;
template struct ControlMessage<ProbeResults>;

}  // namespace runjob
