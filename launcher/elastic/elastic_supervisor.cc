#include "launcher/elastic/elastic_supervisor.hpp"

#include <algorithm>
#include <sys/wait.h>
#include <utility>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/log.hpp"
#include "base/screen_text.hpp"
#include "launcher/elastic/elastic_allocation.hpp"
#include "launcher/supervision/rank_place.hpp"
#include "rendezvous/target.hpp"

namespace runjob {
namespace {

using rendezvous::error_response;

std::vector<Membership::Member> members_of_generation_0(const Allocation& allocation) {
  std::vector<Membership::Member> members;
  for (const Placement& each : allocation.placements) members.push_back({each.rank, each.host, each.local_rank, -1});
  return members;
}

GenerationRecord record_of(const Membership::Generation& generation) {
  std::vector<int> processes;
  for (const Membership::Member& member : generation.members) processes.push_back(member.process);
  std::optional<std::int64_t> steps_redone;
  if (generation.steps_redone >= 0) steps_redone = generation.steps_redone;
  return {generation.number,    static_cast<int>(generation.members.size()),
          generation.cause,     generation.left,
          generation.came,      std::chrono::duration<double>(generation.stood_still).count(),
          std::move(processes), steps_redone};
}

GenerationRecord record_of_generation_0(const Allocation& allocation) {
  GenerationRecord record{0, static_cast<int>(allocation.placements.size()), "the job was started", {}, {}, 0};
  for (const Placement& each : allocation.placements) record.processes.push_back(each.rank);
  return record;
}

std::string shown_reason(const std::string& reason) {
  constexpr std::size_t kShownBytes = 400;
  return one_line(reason.substr(0, kShownBytes));
}

/// The user or the surroundings end the job, not a rank.
bool is_outside_cause(JobOutcome::Cause cause) {
  using Cause = JobOutcome::Cause;
  return cause == Cause::kTimeLimit || cause == Cause::kOutputClosed || cause == Cause::kOutputFailed ||
         cause == Cause::kStoodStill || cause == Cause::kNoNetwork || cause == Cause::kNotReached ||
         cause == Cause::kCannotGoOn;
}

}  // namespace

ElasticSupervisor::ElasticSupervisor(const Allocation& allocation, const ElasticSettings& settings,
                                     RankSupervisor::Options options, MakeAlarm make_alarm, EndRanksBecause end_ranks,
                                     Hooks hooks, const std::vector<MakeHostSource>& sources)
    : options_(std::move(options)),
      make_alarm_(std::move(make_alarm)),
      end_ranks_because_(std::move(end_ranks)),
      hooks_(std::move(hooks)),
      alarm_(make_alarm_()),
      membership_(allocation, settings, options_.start_timeout, actions()),
      changes_(first_hosts(allocation, settings), settings, membership_,
               {[this] { return alarm_->now(); }, hooks_.obstacle, hooks_.add_host, [this] { watch_times(); }}),
      history_{record_of_generation_0(allocation)},
      generation_(make_generation(members_of_generation_0(allocation))) {
  for (const MakeHostSource& make : sources) sources_.push_back(make(changes_));
}

ElasticSupervisor::~ElasticSupervisor() = default;

void ElasticSupervisor::started(int process, const Started& start) {
  if (!ending_ && !std::exchange(begun_, true)) {
    for (const std::unique_ptr<HostSource>& source : sources_) source->start();
    membership_.begin(alarm_->now());
    watch_times();
  }
  processes_[process] = start;
  if (const int rank = generation_->rank_of(process); rank >= 0) generation_->ranks->started(rank, start);
}

void ElasticSupervisor::not_started(int process, const StartFailed& failure) {
  const int rank = generation_->rank_of(process);
  if (rank >= 0 && (ending_ || !membership_.absorbs())) return generation_->ranks->not_started(rank, failure);
  if (ending_) return;
  membership_.exited(process, {false, end_text(failure)}, alarm_->now());
  watch_times();
}

void ElasticSupervisor::exited(int process, const Exited& end) {
  const bool clean = WIFEXITED(end.wait_status) && WEXITSTATUS(end.wait_status) == 0;
  processes_.erase(process);
  waiting_.erase(process);
  const int rank = generation_->rank_of(process);
  if (rank >= 0 && (clean || ending_ || !membership_.absorbs())) generation_->ranks->exited(rank, end);
  if (ending_) return;
  membership_.exited(process, {clean, end_text(end)}, alarm_->now());
  watch_times();
}

bool ElasticSupervisor::joined(int process) {
  const int rank = generation_->rank_of(process);
  return rank >= 0 && membership_.generation() == 0 && generation_->ranks->joined(rank);
}

void ElasticSupervisor::entered(int process) {
  if (ending_) return;
  membership_.entered(process, alarm_->now());
  watch_times();
}

void ElasticSupervisor::request(rendezvous::Request request, rendezvous::Reply reply) {
  const int process = request.process;
  try {
    const rendezvous::Target target = rendezvous::parse_target(request.target);
    if (request.target == "/v1/join") {
      const rendezvous::JoinRequest join = rendezvous::join_request_from_json(request.body);
      if (join.ready && join.rank != process)
        return reply(error_response(400, fmt::format("process {} cannot be ready for process {}", process, join.rank)));
      if (join.ready) return on_ready(process, *join.ready, std::move(reply));
    }
    if (request.target == "/v1/failing" && membership_.absorbs()) {
      on_failing(process, rendezvous::failing_from_json(request.body));
      return reply({});
    }
    if (target.generation && *target.generation != membership_.generation())
      return reply(error_response(410, fmt::format("generation {} is over", *target.generation)));
    request.process = process < 0 ? -1 : generation_->rank_of(process);
    if (process >= 0 && request.process < 0)
      return reply(error_response(410, "this process is in no generation; call it in elastic.run()"));
  } catch (const Error& error) {
    return reply(error_response(400, error.what()));
  }
  generation_->ranks->request(std::move(request), std::move(reply));
}

void ElasticSupervisor::host_lost(int host, const std::string& how) {
  const int index = generation_->host_of(host);
  if (index >= 0 && (ending_ || !membership_.absorbs())) generation_->ranks->host_lost(index, how);
  if (ending_) return;
  std::erase_if(waiting_, [&](const auto& each) { return membership_.roll().host_of(each.first) == host; });
  membership_.host_lost(host, fmt::format("lost the agent on {}: {}", name_of(host), how), alarm_->now());
  watch_times();
}

void ElasticSupervisor::host_not_joined(int host, const std::string& why) {
  if (ending_) return;
  membership_.host_not_joined(host, why, alarm_->now());
  watch_times();
}

void ElasticSupervisor::end_if_caused() {
  const JobOutcome::Cause cause = verdict().outcome().ending.cause;
  if (!membership_.absorbs()) return generation_->ranks->end_if_caused();
  if (!ending_ && is_outside_cause(cause)) {
    ranks_are_ending();
    end_ranks_because_(verdict());
  }
}

void ElasticSupervisor::ranks_are_ending() {
  ending_ = true;
  alarm_->cancel();
  for (const std::unique_ptr<HostSource>& source : sources_) source->stop();
  generation_->ranks->ranks_are_ending();
  const auto text = "the job ends";
  for (auto& [process, reply] : std::exchange(waiting_, {})) reply(error_response(410, text));
}

const Verdict& ElasticSupervisor::verdict() const {
  return std::as_const(*generation_->ranks).verdict();
}
Verdict& ElasticSupervisor::verdict() {
  return generation_->ranks->verdict();
}

int ElasticSupervisor::host_of(int process) const {
  return membership_.roll().host_of(process);
}

int ElasticSupervisor::process_of(int rank) const {
  return generation_->processes.at(static_cast<std::size_t>(rank));
}

Membership::Actions ElasticSupervisor::actions() {
  Membership::Actions actions;
  actions.start = [this](const Membership::Start& start) {
    log::info("a new process starts on {}", name_of(start.host));
    hooks_.start(start);
  };
  actions.form = [this](const Membership::Generation& generation) { form(generation); };
  actions.notify = [this](const rendezvous::Notice& notice) {
    if (notice.ended >= membership_.generation()) generation_->ranks->close_rendezvous(notice.reason);
    hooks_.notify(notice);
  };
  actions.end = [this](int process) {
    waiting_.erase(process);
    hooks_.end(process);
  };
  actions.obstacle = [this](int host) { return hooks_.obstacle(changes_.hosts().at(static_cast<std::size_t>(host))); };
  actions.leave = hooks_.leave;
  actions.finish = [this](const std::string& why) { finish(why); };
  actions.warn = [](const std::string& line) { log::warn("{}", line); };
  return actions;
}

void ElasticSupervisor::form(const Membership::Generation& generation) {
  log::warn("{}", generation.told);
  history_.push_back(record_of(generation));
  generation_ = make_generation(generation.members);
  for (std::size_t rank = 0; rank < generation_->processes.size(); ++rank) {
    const int process = generation_->processes[rank];
    generation_->ranks->started(static_cast<int>(rank), processes_[process]);
    generation_->ranks->joined(static_cast<int>(rank));
  }
  hooks_.formed(generation);
  rendezvous::Topology members = topology_of(generation_->allocation);
  for (const Membership::Member& member : generation.members) members.commits.push_back(member.commit);
  const std::string topology = rendezvous::to_json(members);
  for (const Placement& placement : generation_->allocation.placements) {
    const auto waiting = waiting_.extract(process_of(placement.rank));
    if (!waiting) continue;
    rendezvous::Place place = rank_place(generation_->allocation, placement, options_.start_timeout);
    place.generation = generation.number;
    rendezvous::Response response;
    response.body = rendezvous::join_reply(place, topology);
    waiting.mapped()(std::move(response));
  }
}

void ElasticSupervisor::finish(const std::string& why) {
  if (ending_) return;
  if (!why.empty()) verdict().cannot_go_on(why);
  ranks_are_ending();
  end_ranks_because_(verdict());
}

void ElasticSupervisor::on_ready(int process, const rendezvous::JoinRequest::Ready& ready, rendezvous::Reply reply) {
  if (ending_) return reply(error_response(410, "the job ends"));
  waiting_[process] = std::move(reply);
  if (!membership_.ready(process, ready, alarm_->now()))
    waiting_.extract(process).mapped()(
        error_response(410,
                       "another rank has ended its program with status 0, so that there is no other generation: do all "
                       "ranks take the same number of steps?"));
  watch_times();
}

/// A rank for which the others have waited too long is replaced. The other reports need no action: the ranks end, or
/// meet again, and the cause is then known.
void ElasticSupervisor::on_failing(int process, const rendezvous::Failing& failing) {
  const std::string reason = shown_reason(failing.reason);
  log::info("{} is failing: {}", membership_.roll().name_of(process), reason);
  if (ending_) return;
  membership_.failing(process, failing.own, reason);
  if (failing.late < 0 || std::cmp_greater_equal(failing.late, generation_->processes.size())) return;
  membership_.replace(process_of(failing.late), reason, alarm_->now());
  watch_times();
}

std::unique_ptr<Generation> ElasticSupervisor::make_generation(const std::vector<Membership::Member>& members) {
  auto made = std::make_unique<Generation>();
  made->allocation = elastic_allocation(changes_.hosts(), members, made->hosts);
  for (const Membership::Member& member : members) made->processes.push_back(member.process);
  RankSupervisor::Options options = options_;
  options.generations = history_;
  made->ranks = std::make_unique<RankSupervisor>(made->allocation, std::move(options), make_alarm_(),
                                                 [this](const Verdict& verdict) { on_end(verdict); });
  return made;
}

void ElasticSupervisor::on_end(const Verdict& verdict) {
  if (membership_.absorbs() && !is_outside_cause(verdict.outcome().ending.cause)) return;
  ending_ = true;
  for (const std::unique_ptr<HostSource>& source : sources_) source->stop();
  end_ranks_because_(verdict);
}

void ElasticSupervisor::watch_times() {
  if (ending_) return;
  const auto next = membership_.next_deadline(alarm_->now());
  if (next == Alarm::TimePoint::max()) return alarm_->cancel();
  alarm_->set(next, [this] {
    membership_.expire(alarm_->now());
    watch_times();
  });
}

}  // namespace runjob
