#include "launcher/channel/messages.hpp"

#include "launcher/channel/message_fields.hpp"
#include "launcher/channel/network_fields.hpp"

namespace runjob {

constexpr BindTo last(BindTo) {
  return BindTo::kGpu;
}

constexpr StartFailed::Step last(StartFailed::Step) {
  return StartFailed::Step::kPlacement;
}

void fields(auto& io, Is<Hello> auto& m) {
  io("version", m.version);
  io("pid", m.pid);
  io("hostname", m.hostname);
  io("cores", m.cores);
  io("online_cores", m.online_cores);
  io("free_port", m.free_port);
  io("network", m.network.interfaces);
}

void fields(auto& io, Is<LaunchProcess> auto& m) {
  io("number", m.number);
  io("environment", m.environment);
  io("place", m.place);
  io("waiting", m.waiting);
}

void fields(auto& io, Is<Launch> auto& m) {
  io("command", m.command);
  io("working_directory", m.working_directory);
  io("environment", m.environment);
  io("processes", m.processes);
  io("topology", m.topology);
  io("stdin_process", m.stdin_process);
  io("output_window", m.output_window);
  io("grace_ms", m.grace_ms);
  io("bind_to", m.bind_to);
  io("cores_per_rank", m.cores_per_rank);
  io("gpus_per_rank", m.gpus_per_rank);
  io("names_gpus", m.names_gpus);
  io("elastic_slots", m.elastic_slots);
  io("traceable", m.traceable);
}

void check(const Launch& m) {
  if (m.command.empty()) throw Error(Errc::kProtocol, "a launch message without a command");
}

void fields(auto& io, Is<Started> auto& m) {
  io("pid", m.pid);
  io("cpus", m.cpus);
  io("gpus", m.gpus);
}

void fields(auto& io, Is<StartFailed> auto& m) {
  io("step", m.step);
  io("errno", m.error_number);
  io("text", m.text);
}

void fields(auto& io, Is<Exited> auto& m) {
  io("wait_status", m.wait_status);
  io("out_of_memory", m.out_of_memory);
  io("stopped_by_us", m.stopped_by_us);
  io("input_read", m.input_read);
  io("max_rss_kib", m.max_rss_kib);
  io("cpu_seconds", m.cpu_seconds);
}

void fields(auto& io, Is<StackTrace> auto& m) {
  io("native", m.native);
  io("missing", m.missing);
  io("python", m.python);
}

void fields(auto& io, Is<Credit> auto& m) {
  io("bytes", m.bytes);
}

void check(const Credit& m) {
  if (m.bytes < 0) throw Error(Errc::kProtocol, "a negative credit");
}

void fields(auto& io, Is<Signal> auto& m) {
  io("number", m.number);
}

void fields(auto& io, Is<End> auto& m) {
  io("signal", m.signal);
  io("grace_ms", m.grace_ms);
  io("told", m.told);
}

void fields(auto& io, Is<RemainingProcess> auto& m) {
  io("number", m.number);
  io("pid", m.pid);
  io("name", m.name);
}

void fields(auto& io, Is<Remaining> auto& m) {
  io("processes", m.processes);
  io("left_ms", m.left_ms);
}

void fields(auto& io, Is<RelayedRequest> auto& m) {
  io("id", m.id);
  io("method", m.request.method);
  io("target", m.request.target);
  io("body", m.request.body);
  io("process", m.request.process);
}

void fields(auto& io, Is<RelayedReply> auto& m) {
  io("id", m.id);
  io("status", m.response.status);
  io("content_type", m.response.content_type);
  io("body", m.response.body);
}

template <class Message>
std::string encode(const Message& message) {
  return encode_fields(message);
}

template <class Message>
Message decode(std::string_view payload) {
  return decode_fields<Message>(payload);
}

template std::string encode(const Hello&);
template std::string encode(const Launch&);
template std::string encode(const Started&);
template std::string encode(const StartFailed&);
template std::string encode(const Exited&);
template std::string encode(const StackTrace&);
template std::string encode(const Credit&);
template std::string encode(const Signal&);
template std::string encode(const End&);
template std::string encode(const Remaining&);
template std::string encode(const RelayedRequest&);
template std::string encode(const RelayedReply&);

template Hello decode(std::string_view);
template Launch decode(std::string_view);
template Started decode(std::string_view);
template StartFailed decode(std::string_view);
template Exited decode(std::string_view);
template StackTrace decode(std::string_view);
template Credit decode(std::string_view);
template Signal decode(std::string_view);
template End decode(std::string_view);
template Remaining decode(std::string_view);
template RelayedRequest decode(std::string_view);
template RelayedReply decode(std::string_view);

}  // namespace runjob
