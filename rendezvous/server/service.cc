#include "rendezvous/server/service.hpp"

#include <algorithm>
#include <optional>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/error.hpp"
#include "base/json_text.hpp"
#include "rendezvous/server/answers.hpp"
#include "rendezvous/server/gather_table.hpp"
#include "rendezvous/server/kv_store.hpp"
#include "rendezvous/server/roster.hpp"
#include "rendezvous/target.hpp"

namespace runjob::rendezvous {
namespace {

using Json = nlohmann::json;

std::vector<std::string> hosts_of(std::vector<Member> members) {
  std::vector<std::string> hosts;
  hosts.reserve(members.size());
  for (Member& member : members) hosts.push_back(std::move(member.host));
  return hosts;
}

/// The status and the reason of a request that cannot be carried out.
struct Refusal {
  int status;
  std::string why;
};

Refusal wrong_method(const Request& request, const char* allowed) {
  return {405, fmt::format("{} is not possible here, only {}", request.method, allowed)};
}

void flush(Answers answers) {
  for (Answer& answer : answers) answer.reply(std::move(answer.response));
}

}  // namespace

struct Service::State {
  State(std::vector<Member> members, std::chrono::milliseconds start_timeout_in, Placement placement_in)
      : roster(hosts_of(std::move(members)), start_timeout_in),
        gathers(roster, stored),
        values(stored),
        start_timeout(start_timeout_in),
        placement(std::move(placement_in)) {}

  /// Each takes the reply only when it does not throw Error(kUsage) or Refusal.
  Answers route(Request& request, TimePoint now, Reply& reply);
  Answers join(const Request& request, TimePoint now, Reply& reply);
  Answers gather(GatherTable::Kind kind, const Target& target, Request& request, TimePoint now, Reply& reply);
  Answers key_value(const Target& target, Request& request, TimePoint now, Reply& reply);
  Answers failing(const Request& request, Reply& reply) const;
  std::string status(TimePoint now) const;

  StoredBytes stored;
  Roster roster;
  GatherTable gathers;
  KvStore values;
  const std::chrono::milliseconds start_timeout;
  const Placement placement;
  std::optional<std::string> closed;  // the reason
  std::function<void(int rank, const Failing& failing)> failing_listener;
};

Answers Service::State::route(Request& request, TimePoint now, Reply& reply) {
  if (request.body.size() > kMaxBodyBytes)
    throw Refusal{413, fmt::format("a body of {} bytes is over the limit of {}", request.body.size(), kMaxBodyBytes)};
  if (request.process < -1 || request.process >= roster.size())
    throw Refusal{400, fmt::format("rank {} is not in this job of {}", request.process, roster.size())};
  const Target target = parse_target(request.target);
  const std::vector<std::string>& path = target.path;
  if (path[0] == "v1" && path.size() == 2 && path[1] == "join") return join(request, now, reply);
  if (path[0] == "v1" && path.size() == 3 && path[1] == "gather")
    return gather(GatherTable::Kind::kGather, target, request, now, reply);
  if (path[0] == "v1" && path.size() == 3 && path[1] == "barrier")
    return gather(GatherTable::Kind::kBarrier, target, request, now, reply);
  if (path[0] == "v1" && path.size() == 4 && path[1] == "kv") return key_value(target, request, now, reply);
  if (path[0] == "v1" && path.size() == 2 && path[1] == "failing") return failing(request, reply);
  if (path[0] == "v1" && path.size() == 2 && path[1] == "status") {
    if (request.method != "GET") throw wrong_method(request, "GET");
    Answers answers;
    answers.push_back({std::move(reply), {200, "application/json", status(now)}});
    return answers;
  }
  throw Refusal{404, fmt::format("no such path: {}", request.target.substr(0, 200))};
}

Answers Service::State::join(const Request& request, TimePoint now, Reply& reply) {
  if (request.method != "POST") throw wrong_method(request, "POST");
  if (!placement) throw Refusal{404, "joins are answered by the agent on the rank's host"};
  const int rank = join_request_from_json(request.body).rank;
  if (rank < 0 || rank >= roster.size())
    throw Refusal{400, fmt::format("rank {} is not in this job of {}", rank, roster.size())};
  roster.joined(rank, now);
  Answers answers;
  answers.push_back({std::move(reply), {200, "application/json", placement(rank)}});
  return answers;
}

Answers Service::State::gather(GatherTable::Kind kind, const Target& target, Request& request, TimePoint now,
                               Reply& reply) {
  if (request.method != "POST") throw wrong_method(request, "POST");
  if (kind == GatherTable::Kind::kBarrier && !request.body.empty()) throw Refusal{400, "a barrier takes no body"};
  Arrival arrival;
  arrival.rank = request.process;
  arrival.count = target.count.value_or(roster.size());
  arrival.index = target.index.value_or(request.process);
  if (arrival.rank < 0) throw Refusal{400, fmt::format("expected the header {}, found none", kRankHeader)};
  if (arrival.count > roster.size())
    throw Refusal{400, fmt::format("count {} is over the job's size of {}", arrival.count, roster.size())};
  if (arrival.index >= arrival.count)
    throw Refusal{400, fmt::format("index {} is not below the count of {}", arrival.index, arrival.count)};
  arrival.call = target.call;
  arrival.deadline = now + target.wait.value_or(start_timeout);
  arrival.blob = std::move(request.body);
  arrival.reply = std::move(reply);
  return gathers.arrive(kind, target.path[2], std::move(arrival), now);
}

Answers Service::State::key_value(const Target& target, Request& request, TimePoint now, Reply& reply) {
  const KvStore::Name name(target.path[2], target.path[3]);
  const auto wait = target.wait.value_or(std::chrono::milliseconds(0));
  if (request.method == "GET") return values.get(name, now, now + wait, std::move(reply));
  if (request.method == "PUT") return values.put(name, std::move(request.body), std::move(reply));
  if (request.method == "DELETE") return values.remove(name, std::move(reply));
  throw wrong_method(request, "GET, PUT and DELETE");
}

Answers Service::State::failing(const Request& request, Reply& reply) const {
  if (request.method != "POST") throw wrong_method(request, "POST");
  if (request.process < 0) throw Refusal{400, fmt::format("expected the header {}, found none", kRankHeader)};
  const Failing news = failing_from_json(request.body);
  if (failing_listener) failing_listener(request.process, news);
  Answers answers;
  answers.push_back({std::move(reply), {}});
  return answers;
}

std::string Service::State::status(TimePoint now) const {
  const Json document = {{"size", roster.size()},          {"closed", closed ? Json(*closed) : Json()},
                         {"ranks", roster.to_json(now)},   {"overdue", roster.overdue(now)},
                         {"open_gathers", gathers.size()}, {"gathers", gathers.to_json(now)},
                         {"keys", values.size()},          {"waiting_for_keys", values.waiting()},
                         {"stored_bytes", stored.used()}};
  return json_text(document);
}

Service::Service(std::vector<Member> members, std::chrono::milliseconds start_timeout, Placement placement)
    : state_(std::make_unique<State>(std::move(members), start_timeout, std::move(placement))) {}
Service::~Service() = default;

void Service::handle(Request request, TimePoint now, Reply reply) {
  if (state_->closed) return reply(error_response(410, *state_->closed));
  Answers answers;
  try {
    answers = state_->route(request, now, reply);
  } catch (const Refusal& refusal) {
    answers.push_back({std::move(reply), error_response(refusal.status, refusal.why)});
  } catch (const Error& error) {
    answers.push_back({std::move(reply), error_response(400, error.what())});
  }
  flush(std::move(answers));
}

void Service::on_failing(std::function<void(int rank, const Failing& failing)> listener) {
  state_->failing_listener = std::move(listener);
}

void Service::rank_started(int rank, long pid, TimePoint now) {
  state_->roster.started(rank, pid, now);
}
void Service::rank_joined(int rank, TimePoint now) {
  state_->roster.joined(rank, now);
}
void Service::rank_exited(int rank, const std::string& how, TimePoint) {
  state_->roster.exited(rank, how);
}

void Service::close(const std::string& reason) {
  if (state_->closed) return;
  state_->closed = reason;
  const Response response = error_response(410, reason);
  Answers answers = state_->gathers.close(response);
  for (Answer& answer : state_->values.close(response)) answers.push_back(std::move(answer));
  flush(std::move(answers));
}

Service::TimePoint Service::next_deadline() const {
  return std::min(state_->gathers.next_deadline(), state_->values.next_deadline());
}

void Service::expire(TimePoint now) {
  Answers answers = state_->gathers.expire(now);
  for (Answer& answer : state_->values.expire(now)) answers.push_back(std::move(answer));
  flush(std::move(answers));
}

std::string Service::overdue(TimePoint now) const {
  return state_->roster.overdue(now);
}

std::string Service::status_json(TimePoint now) const {
  return state_->status(now);
}

}  // namespace runjob::rendezvous
