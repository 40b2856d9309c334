#include "launcher/network/probe_messages.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/error.hpp"

namespace runjob {
namespace {

using Json = nlohmann::json;

std::string to_bytes(const Json& document) {
  std::string bytes;
  Json::to_cbor(document, bytes);
  return bytes;
}

/// Calls `read` with the document; what is missing or of another type ends the decoding.
template <class Read>
auto decoded(std::string_view payload, Read read) {
  try {
    return read(Json::from_cbor(payload.begin(), payload.end()));
  } catch (const Json::exception& error) {
    throw Error(Errc::kProtocol, fmt::format("a control message that cannot be read: {}", error.what()));
  }
}

template <class T>
T field(const Json& document, const char* name) {
  return document.at(name).get<T>();
}

Json to_json(const ProbeToken& token) {
  return Json::array({token.question, token.answer});
}

ProbeToken token_from(const Json& document) {
  ProbeToken token{document.at("token").at(0).get<std::string>(), document.at("token").at(1).get<std::string>()};
  if (token.question.size() != ProbeToken::kBytes || token.answer.size() != ProbeToken::kBytes) {
    throw Error(Errc::kProtocol, "a probe's token of another size");
  }
  return token;
}

int port_from(const Json& document) {
  constexpr int kMostPort = 65'535;
  const int port = field<int>(document, "port");
  if (port < 0 || port > kMostPort) throw Error(Errc::kProtocol, fmt::format("{} is no port", port));
  return port;
}

ProbeOutcome outcome_from(const Json& document) {
  const int kind = field<int>(document, "kind");
  if (kind < 0 || kind > static_cast<int>(ProbeOutcome::Kind::kFailed)) {
    throw Error(Errc::kProtocol, fmt::format("an unknown outcome {} of a probe", kind));
  }
  return {static_cast<ProbeOutcome::Kind>(kind), field<int>(document, "errno")};
}

}  // namespace

std::string encode(const ProbeListen& m) {
  return to_bytes({{"token", to_json(m.token)}, {"addresses", m.addresses}});
}

std::string encode(const ProbeListening& m) {
  Json::array_t ports;
  for (const ProbePort& each : m.ports) ports.push_back({{"port", each.port}, {"errno", each.error_number}});
  return to_bytes({{"ports", std::move(ports)}});
}

std::string encode(const ProbeConnect& m) {
  Json::array_t targets;
  for (const ProbeTarget& each : m.targets) {
    targets.push_back(
        {{"host", each.host}, {"address", each.address}, {"port", each.port}, {"token", to_json(each.token)}});
  }
  return to_bytes({{"targets", std::move(targets)}, {"limit_ms", m.limit_ms}});
}

std::string encode(const ProbeResults& m) {
  Json::array_t outcomes;
  for (const ProbeOutcome& each : m.outcomes) {
    outcomes.push_back({{"kind", static_cast<int>(each.kind)}, {"errno", each.error_number}});
  }
  return to_bytes({{"outcomes", std::move(outcomes)}});
}

template <>
ProbeListen decode(std::string_view payload) {
  return decoded(payload, [](const Json& document) {
    return ProbeListen{token_from(document), field<std::vector<std::string>>(document, "addresses")};
  });
}

template <>
ProbeListening decode(std::string_view payload) {
  return decoded(payload, [](const Json& document) {
    ProbeListening m;
    for (const Json& each : document.at("ports")) m.ports.push_back({port_from(each), field<int>(each, "errno")});
    return m;
  });
}

template <>
ProbeConnect decode(std::string_view payload) {
  return decoded(payload, [](const Json& document) {
    ProbeConnect m;
    for (const Json& each : document.at("targets")) {
      m.targets.push_back(
          {field<int>(each, "host"), field<std::string>(each, "address"), port_from(each), token_from(each)});
    }
    m.limit_ms = field<std::int64_t>(document, "limit_ms");
    return m;
  });
}

template <>
ProbeResults decode(std::string_view payload) {
  return decoded(payload, [](const Json& document) {
    ProbeResults m;
    for (const Json& each : document.at("outcomes")) m.outcomes.push_back(outcome_from(each));
    return m;
  });
}

}  // namespace runjob
