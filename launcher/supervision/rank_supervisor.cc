#include "launcher/supervision/rank_supervisor.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "base/log.hpp"
#include "base/screen_text.hpp"
#include "hostfile/rank_list.hpp"
#include "launcher/supervision/rank_place.hpp"

namespace runjob {
namespace {

constexpr std::size_t kShownReasonBytes = 400;
constexpr auto kNever = Alarm::TimePoint::max();

}  // namespace

RankSupervisor::RankSupervisor(const Allocation& allocation, Options options, std::unique_ptr<Alarm> alarm,
                               EndRanksBecause end_ranks)
    : allocation_(allocation),
      options_(std::move(options)),
      alarm_(std::move(alarm)),
      end_ranks_because_(std::move(end_ranks)),
      began_(alarm_->now()),
      verdict_(allocation, options_.command, options_.continue_on_failure, options_.generations),
      service_(members_of(allocation), options_.start_timeout, options_.placement) {
  service_.on_failing([this](int rank, const rendezvous::Failing& failing) {
    const std::string reason = one_line(failing.reason.substr(0, kShownReasonBytes));
    log::info("rank {} is failing after {} ms: {}", rank, milliseconds_since_start(), reason);
    if (failing.mutual) {
      verdict_.mutual_wait(reason);
    } else if (failing.late >= 0) {
      verdict_.rank_late(failing.late, reason);
    } else {
      verdict_.rank_failing(rank, failing.own, reason, failing.lost);
    }
    watch_culprit();
  });
}

int RankSupervisor::host_of(int rank) const {
  const auto& placements = allocation_.placements;
  return rank >= 0 && std::cmp_less(rank, placements.size()) ? placements[static_cast<std::size_t>(rank)].host : -1;
}

void RankSupervisor::started(int rank, const Started& process) {
  verdict_.rank_started(rank, process.pid);
  service_.rank_started(rank, process.pid, alarm_->now());
  const int host = allocation_.placements.at(static_cast<std::size_t>(rank)).host;
  log::info("rank {} runs on {} after {} ms (pid {}{})", rank,
            allocation_.hosts.at(static_cast<std::size_t>(host)).name, milliseconds_since_start(), process.pid,
            process.cpus.empty() ? "" : ", bound to CPUs " + rank_list(process.cpus));
}

/// The rendezvous is not notified, because this always ends the job and the other ranks need no error of their own.
void RankSupervisor::not_started(int rank, const StartFailed& failure) {
  verdict_.rank_not_started(rank, failure);
}

void RankSupervisor::exited(int rank, const Exited& process) {
  verdict_.rank_exited(rank, process);
  service_.rank_exited(rank, verdict_.outcome().how(rank), alarm_->now());
  watch_culprit();
  check_start();
  watch_times();
}

bool RankSupervisor::joined(int rank) {
  service_.rank_joined(rank, alarm_->now());
  const bool is_first = note_join(rank);
  if (is_first) check_start();  // another rank may have ended before
  return is_first;
}

void RankSupervisor::request(rendezvous::Request request, rendezvous::Reply reply) {
  const int rank = request.process;
  const bool is_rank = rank >= 0 && static_cast<std::size_t>(rank) < allocation_.placements.size();
  const bool is_first = options_.placement && request.target == "/v1/join" && is_rank && note_join(rank);
  service_.handle(std::move(request), alarm_->now(), std::move(reply));
  if (is_first) check_start();
  watch_times();
}

void RankSupervisor::host_lost(int host, const std::string& how) {
  verdict_.host_lost(host, how);
}

bool RankSupervisor::note_join(int rank) {
  verdict_.rank_joined(rank);
  log::info("rank {} called init() after {} ms", rank, milliseconds_since_start());
  if (phase_ != Phase::kStarting) return false;
  phase_ = Phase::kJoining;
  start_deadline_ = alarm_->now() + options_.start_timeout;
  watch_times();
  return true;
}

/// Some rank has called init(). Names those that have not, when their time has passed or they have ended without it.
void RankSupervisor::check_start(bool time_is_up) {
  if (phase_ != Phase::kJoining) return;
  if (options_.continue_on_failure) return;  // the others learn it from the rendezvous and decide for themselves
  std::string missing = service_.overdue(alarm_->now());
  if (missing.empty()) return;
  if (time_is_up)
    missing += fmt::format("; for a longer time give --start-timeout, which is {:.3g} s",
                           std::chrono::duration<double>(options_.start_timeout).count());
  verdict_.start_timeout(missing);
  end_if_caused();
}

/// A rank has failed or has announced that it will. The one that failed first gets some time to end with its own
/// status.
void RankSupervisor::watch_culprit() {
  if (phase_ == Phase::kEnding || !verdict_.unsettled() || culprit_deadline_ != kNever) return;
  culprit_deadline_ = alarm_->now() + kCulpritPatience;
  watch_times();
}

void RankSupervisor::end_if_caused() {
  if (phase_ == Phase::kEnding || !verdict_.ends_job()) return;
  ranks_are_ending();
  end_ranks_because_(verdict_);
}

void RankSupervisor::ranks_are_ending() {
  phase_ = Phase::kEnding;
  start_deadline_ = culprit_deadline_ = kNever;
  watch_times();
}

/// Sets the alarm to the earliest of the three times.
void RankSupervisor::watch_times() {
  const auto next = std::min({service_.next_deadline(), start_deadline_, culprit_deadline_});
  if (next == std::exchange(alarm_time_, next)) return;
  if (next == kNever) return alarm_->cancel();
  alarm_->set(next, [this] { on_alarm(); });
}

void RankSupervisor::on_alarm() {
  alarm_time_ = kNever;
  const auto now = alarm_->now();
  service_.expire(now);
  if (start_deadline_ <= now) {
    start_deadline_ = kNever;
    check_start(/*time_is_up=*/true);
  }
  if (culprit_deadline_ <= now) {
    culprit_deadline_ = kNever;
    verdict_.settle();
    end_if_caused();
  }
  watch_times();
}

std::int64_t RankSupervisor::milliseconds_since_start() const {
  return std::chrono::duration_cast<std::chrono::milliseconds>(alarm_->now() - began_).count();
}

}  // namespace runjob
