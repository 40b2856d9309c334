#include "launcher/channel/messages.hpp"

#include "launcher/channel/control_message.hpp"
#include "launcher/channel/network_fields.hpp"
#include "rendezvous/protocol_fields.hpp"

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

template struct ControlMessage<Hello>;
template struct ControlMessage<Launch>;
template struct ControlMessage<Started>;
template struct ControlMessage<StartFailed>;
template struct ControlMessage<Exited>;
template struct ControlMessage<StackTrace>;
template struct ControlMessage<Credit>;
template struct ControlMessage<Signal>;
template struct ControlMessage<End>;
template struct ControlMessage<Remaining>;
template struct ControlMessage<RelayedRequest>;
template struct ControlMessage<RelayedReply>;

}  // namespace runjob
