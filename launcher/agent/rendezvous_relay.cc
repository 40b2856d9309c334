#include "launcher/agent/rendezvous_relay.hpp"

#include <utility>

#include <nlohmann/json.hpp>

#include "base/json_text.hpp"

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
}

void RendezvousRelay::on_request(rendezvous::Request request, rendezvous::Reply reply) {
  if (request.target == "/v1/join") return join(request, reply);
  if (launcher_lost_) return reply(launcher_is_gone());
  const std::int64_t id = next_request_++;
  waiting_.emplace(id, std::move(reply));
  frames_.send_control(ToLauncher::kRequest, -1, encode(RelayedRequest{id, std::move(request)}));
}

void RendezvousRelay::join(const rendezvous::Request& request, const rendezvous::Reply& reply) {
  const nlohmann::json body = try_parse_json(request.body);
  const bool well_formed = body.is_object() && body.contains("rank") && body["rank"].is_number_integer();
  const LaunchRank* rank = well_formed ? ranks_.find(body["rank"].get<int>()) : nullptr;
  if (rank == nullptr) return reply(rendezvous::error_response(400, "join: no such rank on this host"));
  frames_.send_control(ToLauncher::kJoined, rank->rank, {});
  rendezvous::Response response;
  response.body = rendezvous::join_reply(rank->place, ranks_.launch().topology);
  reply(std::move(response));
}

}  // namespace runjob
