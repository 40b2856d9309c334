#include "launcher/agent/rendezvous_relay.hpp"

#include <utility>

#include "base/error.hpp"
#include "rendezvous/target.hpp"

namespace runjob {
namespace {

rendezvous::Response launcher_is_gone() {
  return rendezvous::error_response(410, "the launcher is gone");
}

}  // namespace

RendezvousRelay::RendezvousRelay(boost::asio::any_io_executor executor, const RankProcesses& ranks,
                                 FrameWriter<ToLauncher>& frames)
    : executor_(std::move(executor)), ranks_(ranks), frames_(frames) {}

void RendezvousRelay::open(const std::string& socket) {
  server_.emplace(executor_, socket, [this](rendezvous::Request request, rendezvous::Reply reply) {
    on_request(std::move(request), std::move(reply));
  });
}

void RendezvousRelay::on_reply(RelayedReply message) {
  const auto waiting = waiting_.extract(message.id);
  if (waiting) waiting.mapped()(std::move(message.response));
}

void RendezvousRelay::on_launcher_lost() {
  launcher_lost_ = true;
  for (auto& [id, reply] : std::exchange(waiting_, {})) reply(launcher_is_gone());
  for (auto& [process, reply] : std::exchange(notice_waiters_, {})) reply(launcher_is_gone());
}

void RendezvousRelay::on_request(rendezvous::Request request, rendezvous::Reply reply) {
  if (request.target == "/v1/join") return join(std::move(request), std::move(reply));
  if (launcher_lost_) return reply(launcher_is_gone());
  if (request.target.starts_with("/v1/elastic/notice")) return ask_for_notice(request, std::move(reply));
  relay(std::move(request), std::move(reply));
}

void RendezvousRelay::relay(rendezvous::Request request, rendezvous::Reply reply) {
  if (launcher_lost_) return reply(launcher_is_gone());
  const std::int64_t id = next_request_++;
  waiting_.emplace(id, std::move(reply));
  frames_.send_control(ToLauncher::kRequest, -1, encode(RelayedRequest{id, std::move(request)}));
}

void RendezvousRelay::join(rendezvous::Request request, rendezvous::Reply reply) {
  const LaunchProcess* process = nullptr;
  try {
    const rendezvous::JoinRequest join = rendezvous::join_request_from_json(request.body);
    process = ranks_.find(join.rank);
    if (process != nullptr && join.ready) return relay(std::move(request), std::move(reply));
  } catch (const Error& error) {
    return reply(rendezvous::error_response(400, error.what()));
  }
  if (process == nullptr) return reply(rendezvous::error_response(400, "join: no such rank on this host"));
  frames_.send_control(ToLauncher::kJoined, process->number, {});
  const bool generation_is_over = notice_.ended >= process->place.generation;
  rendezvous::Response response;
  response.body = rendezvous::join_reply(process->place, ranks_.topology_of(process->number),
                                         process->waiting || generation_is_over);
  reply(std::move(response));
}

/// The first request for a notice shows that the process has entered elastic.run().
void RendezvousRelay::ask_for_notice(const rendezvous::Request& request, rendezvous::Reply reply) {
  int after = 0;
  try {
    after = rendezvous::parse_target(request.target).after.value_or(0);
  } catch (const Error& error) {
    return reply(rendezvous::error_response(400, error.what()));
  }
  if (ranks_.find(request.process) == nullptr)
    return reply(rendezvous::error_response(400, "notice: no such rank on this host"));
  if (entered_.insert(request.process).second) frames_.send_control(ToLauncher::kEntered, request.process, {});
  rendezvous::Reply& waiter = notice_waiters_[request.process];
  if (waiter) waiter(rendezvous::error_response(404, "asked again"));
  waiter = std::move(reply);
  if (notice_.sequence > after) answer_notice(request.process);
}

void RendezvousRelay::on_notice(rendezvous::Notice notice) {
  notice_ = std::move(notice);
  while (!notice_waiters_.empty()) answer_notice(notice_waiters_.begin()->first);
}

void RendezvousRelay::answer_notice(int process) {
  rendezvous::Response response;
  response.body = rendezvous::to_json(notice_);
  const rendezvous::Reply reply = std::move(notice_waiters_.extract(process).mapped());
  reply(std::move(response));
}

}  // namespace runjob
