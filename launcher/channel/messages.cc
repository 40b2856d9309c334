#include "launcher/channel/messages.hpp"

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

/// Reads fields by name; what is missing or of another type ends the decoding.
class Fields {
 public:
  explicit Fields(const Json& document) : document_(document) {}
  template <class T>
  void read(const char* name, T& value) const {
    value = document_.at(name).get<T>();
  }

 private:
  const Json& document_;
};

Json to_json(const Environment& environment) {
  Json::array_t pairs;  // an array, so that names need not be UTF-8 either
  for (const auto& [name, value] : environment) pairs.push_back(Json::array({name, value}));
  return pairs;
}

Environment environment_from(const Json& pairs) {
  Environment environment;
  for (const Json& pair : pairs) environment.emplace(pair.at(0).get<std::string>(), pair.at(1).get<std::string>());
  return environment;
}

Json to_json(const NetworkFacts& facts) {
  Json::array_t interfaces;
  for (const NetworkInterface& each : facts.interfaces) {
    Json::array_t addresses;
    for (const InterfaceAddress& address : each.addresses) {
      addresses.push_back(Json::array({address.address, address.prefix_length}));
    }
    interfaces.push_back({{"name", each.name},
                          {"speed_mbits", each.speed_mbits},
                          {"loopback", each.loopback},
                          {"point_to_point", each.point_to_point},
                          {"carrier", each.carrier},
                          {"default_route", each.default_route},
                          {"addresses", std::move(addresses)}});
  }
  return interfaces;
}

NetworkFacts network_facts_from(const Json& document) {
  NetworkFacts facts;
  for (const Json& entry : document) {
    NetworkInterface& each = facts.interfaces.emplace_back();
    const Fields fields(entry);
    fields.read("name", each.name);
    fields.read("speed_mbits", each.speed_mbits);
    fields.read("loopback", each.loopback);
    fields.read("point_to_point", each.point_to_point);
    fields.read("carrier", each.carrier);
    fields.read("default_route", each.default_route);
    for (const Json& address : entry.at("addresses")) {
      each.addresses.push_back({address.at(0).get<std::string>(), address.at(1).get<int>()});
    }
  }
  return facts;
}

/// The number of an enumeration's value, whose last one is `last`.
int enumerator(const Json& document, const char* name, int last) {
  const int number = document.at(name).get<int>();
  if (number < 0 || number > last) throw Error(Errc::kProtocol, fmt::format("an unknown {}: {}", name, number));
  return number;
}

template <class Message>
Message from(const Json& document);

template <>
Hello from(const Json& document) {
  Hello m;
  const Fields fields(document);
  fields.read("version", m.version);
  fields.read("pid", m.pid);
  fields.read("hostname", m.hostname);
  fields.read("cores", m.cores);
  fields.read("online_cores", m.online_cores);
  fields.read("free_port", m.free_port);
  m.network = network_facts_from(document.at("network"));
  return m;
}

template <>
Launch from(const Json& document) {
  Launch m;
  const Fields fields(document);
  fields.read("command", m.command);
  fields.read("working_directory", m.working_directory);
  fields.read("topology", m.topology);
  fields.read("stdin_rank", m.stdin_rank);
  fields.read("output_window", m.output_window);
  fields.read("grace_ms", m.grace_ms);
  fields.read("cores_per_rank", m.cores_per_rank);
  fields.read("gpus_per_rank", m.gpus_per_rank);
  fields.read("traceable", m.traceable);
  m.bind_to = static_cast<BindTo>(enumerator(document, "bind_to", static_cast<int>(BindTo::kSharedCore)));
  m.environment = environment_from(document.at("environment"));
  for (const Json& entry : document.at("ranks")) {
    LaunchRank& rank = m.ranks.emplace_back();
    rank.rank = entry.at("rank").get<int>();
    rank.environment = environment_from(entry.at("environment"));
    rank.place = rendezvous::place_from_json(entry.at("place").get<std::string>());
  }
  if (m.command.empty()) throw Error(Errc::kProtocol, "a launch message without a command");
  return m;
}

template <>
Started from(const Json& document) {
  Started m;
  const Fields fields(document);
  fields.read("pid", m.pid);
  fields.read("cpus", m.cpus);
  return m;
}

template <>
StartFailed from(const Json& document) {
  StartFailed m;
  const Fields fields(document);
  m.step =
      static_cast<StartFailed::Step>(enumerator(document, "step", static_cast<int>(StartFailed::Step::kPlacement)));
  fields.read("errno", m.error_number);
  fields.read("text", m.text);
  return m;
}

template <>
Exited from(const Json& document) {
  Exited m;
  const Fields fields(document);
  fields.read("wait_status", m.wait_status);
  fields.read("out_of_memory", m.out_of_memory);
  fields.read("stopped_by_us", m.stopped_by_us);
  fields.read("max_rss_kib", m.max_rss_kib);
  fields.read("cpu_seconds", m.cpu_seconds);
  return m;
}

template <>
StackTrace from(const Json& document) {
  StackTrace m;
  const Fields fields(document);
  fields.read("native", m.native);
  fields.read("missing", m.missing);
  fields.read("python", m.python);
  return m;
}

template <>
Remaining from(const Json& document) {
  Remaining m;
  const Fields fields(document);
  fields.read("left_ms", m.left_ms);
  for (const Json& process : document.at("processes")) {
    RemainingProcess& each = m.processes.emplace_back();
    const Fields of_process(process);
    of_process.read("rank", each.rank);
    of_process.read("pid", each.pid);
    of_process.read("name", each.name);
  }
  return m;
}

template <>
Credit from(const Json& document) {
  Credit m;
  Fields(document).read("bytes", m.bytes);
  if (m.bytes < 0) throw Error(Errc::kProtocol, "a negative credit");
  return m;
}

template <>
Signal from(const Json& document) {
  Signal m;
  Fields(document).read("number", m.number);
  return m;
}

template <>
End from(const Json& document) {
  End m;
  const Fields fields(document);
  fields.read("signal", m.signal);
  fields.read("grace_ms", m.grace_ms);
  fields.read("told", m.told);
  return m;
}

template <>
RelayedRequest from(const Json& document) {
  RelayedRequest m;
  const Fields fields(document);
  fields.read("id", m.id);
  fields.read("method", m.request.method);
  fields.read("target", m.request.target);
  fields.read("body", m.request.body);
  fields.read("rank", m.request.rank);
  return m;
}

template <>
RelayedReply from(const Json& document) {
  RelayedReply m;
  const Fields fields(document);
  fields.read("id", m.id);
  fields.read("status", m.response.status);
  fields.read("content_type", m.response.content_type);
  m.response.body = document.at("body").get<std::string>();
  return m;
}

}  // namespace

std::string encode(const Hello& m) {
  return to_bytes({{"version", m.version},
                   {"pid", m.pid},
                   {"hostname", m.hostname},
                   {"cores", m.cores},
                   {"online_cores", m.online_cores},
                   {"free_port", m.free_port},
                   {"network", to_json(m.network)}});
}

std::string encode(const Launch& m) {
  Json::array_t ranks;
  for (const LaunchRank& rank : m.ranks) {
    ranks.push_back(
        {{"rank", rank.rank}, {"environment", to_json(rank.environment)}, {"place", rendezvous::to_json(rank.place)}});
  }
  return to_bytes({{"command", m.command},
                   {"working_directory", m.working_directory},
                   {"environment", to_json(m.environment)},
                   {"ranks", std::move(ranks)},
                   {"topology", m.topology},
                   {"stdin_rank", m.stdin_rank},
                   {"output_window", m.output_window},
                   {"grace_ms", m.grace_ms},
                   {"bind_to", static_cast<int>(m.bind_to)},
                   {"cores_per_rank", m.cores_per_rank},
                   {"gpus_per_rank", m.gpus_per_rank},
                   {"traceable", m.traceable}});
}

std::string encode(const Started& m) {
  return to_bytes({{"pid", m.pid}, {"cpus", m.cpus}});
}

std::string encode(const StartFailed& m) {
  return to_bytes({{"step", static_cast<int>(m.step)}, {"errno", m.error_number}, {"text", m.text}});
}

std::string encode(const Exited& m) {
  return to_bytes({{"wait_status", m.wait_status},
                   {"out_of_memory", m.out_of_memory},
                   {"stopped_by_us", m.stopped_by_us},
                   {"max_rss_kib", m.max_rss_kib},
                   {"cpu_seconds", m.cpu_seconds}});
}

std::string encode(const StackTrace& m) {
  return to_bytes({{"native", m.native}, {"missing", m.missing}, {"python", m.python}});
}

std::string encode(const Remaining& m) {
  Json::array_t processes;
  for (const RemainingProcess& each : m.processes) {
    processes.push_back({{"rank", each.rank}, {"pid", each.pid}, {"name", each.name}});
  }
  return to_bytes({{"processes", std::move(processes)}, {"left_ms", m.left_ms}});
}

std::string encode(const Credit& m) {
  return to_bytes({{"bytes", m.bytes}});
}

std::string encode(const Signal& m) {
  return to_bytes({{"number", m.number}});
}

std::string encode(const End& m) {
  return to_bytes({{"signal", m.signal}, {"grace_ms", m.grace_ms}, {"told", m.told}});
}

std::string encode(const RelayedRequest& m) {
  return to_bytes({{"id", m.id},
                   {"method", m.request.method},
                   {"target", m.request.target},
                   {"body", m.request.body},
                   {"rank", m.request.rank}});
}

std::string encode(const RelayedReply& m) {
  return to_bytes({{"id", m.id},
                   {"status", m.response.status},
                   {"content_type", m.response.content_type},
                   {"body", m.response.body.str()}});
}

template <class Message>
Message decode(std::string_view payload) {
  try {
    return from<Message>(Json::from_cbor(payload.begin(), payload.end()));
  } catch (const Json::exception& error) {
    throw Error(Errc::kProtocol, fmt::format("a control message that cannot be read: {}", error.what()));
  }
}

template Hello decode(std::string_view);
template Launch decode(std::string_view);
template Started decode(std::string_view);
template StartFailed decode(std::string_view);
template Exited decode(std::string_view);
template StackTrace decode(std::string_view);
template Remaining decode(std::string_view);
template Credit decode(std::string_view);
template Signal decode(std::string_view);
template End decode(std::string_view);
template RelayedRequest decode(std::string_view);
template RelayedReply decode(std::string_view);

}  // namespace runjob
