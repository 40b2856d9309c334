#include "launcher/elastic/membership.hpp"

#include <algorithm>
#include <set>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/screen_text.hpp"
#include "launcher/elastic/elastic_allocation.hpp"
#include "launcher/elastic/generation_line.hpp"
#include "launcher/job_spec/horovod_words.hpp"

namespace runjob {
namespace {

constexpr auto kNever = Membership::TimePoint::max();
/// The commits after which the failures on a host are forgotten.
constexpr std::int64_t kForgivingCommits = 10;

double seconds(std::chrono::steady_clock::duration time) {
  return std::chrono::duration<double>(time).count();
}

/// How many members a generation may have when so many processes are ready: spares are kept, unless they replace lost
/// members.
int most_members(const ElasticSettings& settings, int target, int ready) {
  return std::min(settings.max_ranks, std::max(target, ready - settings.spares));
}

}  // namespace

Membership::Membership(const Allocation& allocation, ElasticSettings settings, std::chrono::milliseconds start_timeout,
                       Actions actions)
    : settings_(std::move(settings)),
      start_timeout_(start_timeout),
      actions_(std::move(actions)),
      exclusions_(settings_.cooldown, settings_.rank_restarts),
      limits_(settings_.reset_limit, settings_.as_horovod),
      notices_(actions_.notify),
      next_process_(static_cast<int>(allocation.placements.size())),
      target_(next_process_) {
  const std::vector<Host> hosts = first_hosts(allocation, settings_);
  for (std::size_t i = 0; i < hosts.size(); ++i)
    roll_.hosts[static_cast<int>(i)] = {hosts[i].name, hosts[i].slots, true};
  for (const Placement& each : allocation.placements) {
    Process& process = roll_.processes[each.rank];
    process.host = each.host;
    process.local_rank = each.local_rank;
    process.rank = each.rank;
  }
}

void Membership::begin(TimePoint now) {
  if (std::exchange(begun_, true)) return;
  start_missing(now);
}

void Membership::entered(int process, TimePoint now) {
  const auto found = roll_.processes.find(process);
  if (found == roll_.processes.end()) return;
  found->second.entered = true;
  if (!std::exchange(any_entered_, true)) go_on(now);
}

bool Membership::ready(int process, const rendezvous::JoinRequest::Ready& ready, TimePoint now) {
  const auto found = roll_.processes.find(process);
  if (found == roll_.processes.end()) return true;
  Process& which = found->second;
  which.entered = any_entered_ = true;
  if (finishing_ && which.rank >= 0 && which.stays()) return false;
  which.ready = which.stays();
  which.commit = ready.commit;
  which.steps = ready.steps;
  if (!which.ready) {
    drop(process);  // it has not seen the notice
  } else if (which.was_member()) {
    end_by_request(process, ready.reason, now);
  } else if (!forming_) {
    notify_growth();
  }
  go_on(now);
  return true;
}

void Membership::failing(int process, bool own, const std::string& reason) {
  if (roll_.was_member(process)) cause_.report(process, own, reason);
}

void Membership::exited(int process, const End& end, TimePoint now) {
  const auto found = roll_.processes.find(process);
  if (found == roll_.processes.end()) return;
  const std::string name = roll_.name_of(process);
  const Process gone = found->second;
  roll_.processes.erase(found);
  if (!roll_.hosts.at(gone.host).usable && roll_.count_on(gone.host) == 0) actions_.leave(gone.host);
  if (!any_entered_) return go_on(now);  // a static job, whose verdict is made elsewhere
  const bool expected = !gone.stays() || finishing_;
  if (!expected && end.clean && gone.rank >= 0) {
    finishing_ = !forming_;  // else the others have still to do what this one has done
  } else if (!expected) {
    const std::string error = cause_.own_error(process);
    const std::string reason = fmt::format("{} {}{}{}", name, end.how, error.empty() ? "" : ": ", error);
    const std::string consequence = blame(gone, gone.was_member(), now);
    if (gone.was_member()) {
      limits_.lost(1);
      const Cause kind = forming_ && gone.ready ? Cause::kLostWhileForming
                                                : cause_.kind_for(process, Cause::kEndOfVictim, Cause::kEnd);
      end_generation(kind, reason, now, consequence);
    } else {
      actions_.warn(reason + consequence);
    }
  }
  if (gone.was_member() && !finishing_) left_.push_back(name);
  go_on(now);
}

void Membership::host_lost(int host, const std::string& text, TimePoint now) {
  exclusions_.exclude(host, now);
  int lost_members = 0;
  for (const auto& [number, process] : roll_.processes) {
    if (process.host != host || !process.was_member()) continue;
    ++lost_members;
    left_.push_back(roll_.name_of(number));
  }
  std::erase_if(roll_.processes, [host](const auto& each) { return each.second.host == host; });
  limits_.lost(lost_members);
  if (lost_members > 0 && absorbs()) {
    end_generation(Cause::kHostLost, text, now,
                   cause_.exclude(roll_.hosts[host].name, exclusions_.duration_text(host, now)));
  } else if (lost_members == 0) {
    actions_.warn(
        fmt::format("{}; {} is excluded {}", text, roll_.hosts[host].name, exclusions_.duration_text(host, now)));
  }
  go_on(now);
}

void Membership::host_not_joined(int host, const std::string& why, TimePoint now) {
  const std::string text = fmt::format("{} cannot join: {}", roll_.hosts[host].name, why);
  if (actions_.obstacle(host).empty()) return host_lost(host, text, now);
  if (!std::exchange(roll_.hosts[host].is_obstacle_known, true)) actions_.warn(text);
  std::erase_if(roll_.processes, [host](const auto& each) { return each.second.host == host; });
  go_on(now);
}

void Membership::set_host(int host, const std::string& name, int slots, TimePoint now, bool forgiven) {
  roll_.hosts[host] = {name, slots, slots > 0};
  if (forgiven) exclusions_.readmit(host);
  if (finishing_) return;
  let_go(roll_.surplus_on(host));
  if (slots == 0 && roll_.count_on(host) == 0) actions_.leave(host);
  go_on(now);
}

void Membership::resize(int ranks, TimePoint now) {
  settings_.max_ranks = target_ = ranks;
  if (finishing_) return;
  let_go(roll_.surplus(ranks, settings_.spares));
  if (!forming_) notify_growth();
  go_on(now);
}

/// Members leave at their next commit. A process that waits for a generation, or is on its way there, is ended.
void Membership::let_go(const std::vector<int>& numbers) {
  bool any_member = false;
  for (const int number : numbers) {
    Process& process = roll_.processes.at(number);
    if (process.rank < 0 || process.ready) {
      drop(number);
      continue;
    }
    process.leaving = any_member = true;
    notices_.let_go(number);
  }
  if (any_member) notices_.outdate(generation_, /*only_added=*/false);
}

Membership::TimePoint Membership::next_deadline(TimePoint now) const {
  return std::min(
      {member_deadline_, pause_deadline_, newcomer_deadline_, size_deadline_, exclusions_.next_return(now)});
}

void Membership::expire(TimePoint now) {
  if (member_deadline_ <= now) {
    member_deadline_ = kNever;
    for (auto& [number, process] : roll_.processes) {
      if (!process.is_awaited()) continue;
      const std::string name = roll_.name_of(number);
      drop(number);
      const std::string what =
          fmt::format("{} has not come back within {:.3g} s after its generation ended", name, seconds(start_timeout_));
      cause_.note(Cause::kAbsence, what);
      actions_.warn(fmt::format("{}; it is replaced{}", what, blame(process, true, now)));
    }
  }
  if (size_deadline_ <= now) {
    size_deadline_ = kNever;
    const double waited = seconds(settings_.timeout);
    return actions_.finish(
        fmt::format("{}{} of at least {} are ready after the {:.3g} s of --elastic-timeout: {}",
                    settings_.as_horovod ? horovod_timeout_words(settings_.min_ranks, waited) + " " : "",
                    roll_.ready_in_order().size(), counted(settings_.min_ranks, "rank"), waited, cause_.text()));
  }
  go_on(now);
}

void Membership::replace(int process, const std::string& why, TimePoint now) {
  if (roll_.rank_of(process) < 0 || !absorbs()) return;
  end_generation(Cause::kEnd, fmt::format("{} stalled: {}", roll_.name_of(process), why), now);
  drop(process);
  blame(roll_.processes.at(process), true, now);
  go_on(now);
}

/// Ends a process that does not belong to the job any more; another one may take its place.
void Membership::drop(int number) {
  Process& process = roll_.processes.at(number);
  if (process.rank >= 0) left_.push_back(roll_.name_of(number));
  if (process.rank >= 0 && !process.leaving) limits_.lost(1);
  process.ending = true;
  process.rank = -1;
  actions_.end(number);
}

/// A process has failed. Returns the consequence for people, "" if there is none or it is not known yet.
std::string Membership::blame(const Process& failed, bool of_member, TimePoint now) {
  const int host = failed.host;
  if (of_member) {
    if (const auto postponed = exclusions_.postpone({host, failed.member_since, next_process_})) {
      if (!postponed->is_decisive) next_host_.prefer(host);
      return "";
    }
  }
  next_host_.prefer(host);
  if (!exclusions_.rank_failed(host, next_process_, now)) return "";
  std::vector<int> others;
  for (const auto& [number, process] : roll_.processes) {
    if (settings_.as_horovod && process.host == host && process.stays()) others.push_back(number);
  }
  for (const int number : others) drop(number);
  if (of_member) return cause_.exclude(roll_.hosts[host].name, exclusions_.duration_text(host, now));
  return fmt::format("; {} is excluded {}", roll_.hosts[host].name, exclusions_.duration_text(host, now));
}

/// A member asks for the next generation. It has no reason of its own when it follows a notice, and when it has lost
/// another member. `error`: its own one, or what came of such a loss.
void Membership::end_by_request(int process, const std::string& error, TimePoint now) {
  if (error.empty() && notices_.is_outdated(generation_) && !notices_.has_ended(generation_))
    return end_generation(Cause::kHostsChanged, kHostsChanged, now);
  const std::string why =
      fmt::format("{}: {}", roll_.name_of(process), error.empty() ? "it lost its connection to another rank" : error);
  const Cause of_error = error.empty() ? Cause::kLostConnection : Cause::kError;
  end_generation(cause_.kind_for(process, Cause::kLostConnection, of_error), why, now);
}

void Membership::end_generation(Cause kind, const std::string& reason, TimePoint now, const std::string& consequence) {
  if (!forming_) {
    forming_ = true;
    forming_since_ = now;
    member_deadline_ = now + start_timeout_;
    roll_.make_newcomers_of_absent_members();
  }
  cause_.note(kind, reason, consequence);
  if (kind != Cause::kHostsChanged) notices_.end(generation_, reason + consequence);
}

/// Enough newcomers are ready for a larger generation.
void Membership::notify_growth() {
  if (finishing_ || notices_.is_outdated(generation_)) return;
  const int ready = roll_.ranks() + roll_.ready_newcomers();
  if (std::min(ready, most_members(settings_, target_, ready)) > roll_.ranks())
    notices_.outdate(generation_, /*only_added=*/true);
}

void Membership::go_on(TimePoint now) {
  if (finishing_ || !any_entered_) {
    if (roll_.ranks() == 0) actions_.finish("");
    return;
  }
  if (!forming_ && roll_.ranks() == 0) end_generation(Cause::kHostsChanged, "all of its members have left", now);
  start_missing(now);
  form_if_ready(now);
}

/// The newest commit is known now, so a failure after many commits is distinguished from one of several in a row.
void Membership::judge_failures(std::int64_t newest_commit, TimePoint now) {
  for (const Exclusions::Failure& failure : exclusions_.postponed()) {
    const int host = failure.host;
    if (newest_commit - failure.member_since >= kForgivingCommits) exclusions_.forgive(host);
    if (failure.is_decisive) next_host_.prefer(host);
    if (exclusions_.rank_failed(host, failure.first_successor, now))
      cause_.add(cause_.exclude(roll_.hosts[host].name, exclusions_.duration_text(host, now)));
  }
}

/// The next generation must not be formed yet: members that have lost each other again pause, and under Horovod's rules
/// newcomers are waited for.
bool Membership::delays_forming(std::int64_t newest_commit, TimePoint now) {
  pause_deadline_ = cause_.is_lost_connection() ? forming_since_ + limits_.pause(newest_commit) : now;
  if (now < pause_deadline_) return true;
  pause_deadline_ = kNever;
  if (settings_.as_horovod && roll_.any_on_its_way()) {
    newcomer_deadline_ = forming_since_ + settings_.timeout;
    if (now < newcomer_deadline_) return true;
  }
  newcomer_deadline_ = kNever;
  return false;
}

void Membership::form_if_ready(TimePoint now) {
  if (!forming_) return;
  for (const auto& [number, process] : roll_.processes) {
    if (process.is_awaited()) return;
  }
  member_deadline_ = kNever;
  std::vector<int> next = roll_.ready_in_order();
  const std::int64_t newest_commit = next.empty() ? -1 : roll_.processes.at(next.front()).commit;
  judge_failures(newest_commit, now);
  start_missing(now);
  if (delays_forming(newest_commit, now)) return;
  const int ready = static_cast<int>(next.size());
  const int count = std::min(ready, most_members(settings_, target_, ready));
  next.resize(static_cast<std::size_t>(count));
  if (count >= settings_.min_ranks) return form(next, now);
  wait_for_ranks(count, now);
}

/// Fewer than ElasticSettings::min_ranks are ready. The job ends when no other rank can come.
void Membership::wait_for_ranks(int ready, TimePoint now) {
  const bool may_grow =
      roll_.any_on_its_way() || !settings_.discovery_script.empty() || exclusions_.next_return(now) != kNever;
  if (!may_grow) {
    return actions_.finish(fmt::format("{}{} of at least {} are left, and no host can take another one: {}",
                                       settings_.as_horovod ? kHorovodFailureWords : "", ready,
                                       counted(settings_.min_ranks, "rank"), cause_.text()));
  }
  if (size_deadline_ != kNever) return;
  size_deadline_ = now + settings_.timeout;
  actions_.warn(fmt::format("{} of at least {} are ready; waiting up to {:.3g} s for more: {}", ready,
                            counted(settings_.min_ranks, "rank"), seconds(settings_.timeout), cause_.text()));
}

void Membership::form(const std::vector<int>& next, TimePoint now) {
  GenerationLimits::Next limits;
  limits.newest_commit = roll_.processes.at(next.front()).commit;
  std::set<int> newcomers;
  for (const int number : next) {
    if (roll_.rank_of(number) < 0) newcomers.insert(number);
  }
  limits.newcomers = static_cast<int>(newcomers.size());
  limits.after_loss = notices_.has_ended(generation_);
  limits.own_failure = cause_.is_own_failure();
  if (const std::string why = limits_.refuse(limits, cause_.text()); !why.empty()) return actions_.finish(why);
  if (newcomers.size() == next.size()) {
    actions_.warn(
        "all ranks of the last generation were lost, and the state of their last commit with them; the script begins "
        "anew, from the newest file of --commit-dir or its own checkpoint, if there is one");
  }
  ++generation_;
  Generation formed;
  formed.number = generation_;
  formed.left = std::exchange(left_, {});
  for (const auto& [number, process] : roll_.processes) {
    if (process.rank >= 0 && !process.stays()) formed.left.push_back(roll_.name_of(number));
  }
  formed.steps_redone = roll_.steps_since(limits.newest_commit);
  for (auto& [number, process] : roll_.processes) process.rank = process.absent_rank = -1;
  for (const int number : next) {
    Process& process = roll_.processes.at(number);
    process.rank = static_cast<int>(formed.members.size());
    process.ready = false;
    formed.members.push_back({number, process.host, process.local_rank, process.commit});
    if (newcomers.contains(number)) {
      formed.came.push_back(roll_.name_of(number));
      process.member_since = std::max<std::int64_t>(0, limits.newest_commit);
    } else if (limits.newest_commit - process.member_since >= kForgivingCommits) {
      exclusions_.forgive(process.host, number);
    }
  }
  limits_.formed(limits.newest_commit);
  target_ = std::min(settings_.max_ranks, std::max(target_, static_cast<int>(next.size())));
  formed.cause = cause_.text() == kHostsChanged ? change_text(formed.left, formed.came) : cause_.text();
  formed.stood_still = now - forming_since_;
  const std::string reason = cause_.text() == kHostsChanged ? formed.cause : cause_.reason();
  formed.told = generation_line({reason, generation_, roll_.ranks(), formed.stood_still, cause_.excluded()});
  forming_ = false;
  cause_.clear();
  member_deadline_ = newcomer_deadline_ = size_deadline_ = kNever;
  actions_.form(formed);
  notify_growth();
}

void Membership::start_missing(TimePoint now) {
  bool any = false;
  const auto can_join = [this](int host) {
    const std::string why = actions_.obstacle(host);
    if (!why.empty() && !std::exchange(roll_.hosts.at(host).is_obstacle_known, true))
      actions_.warn(fmt::format("{} cannot join: {}", roll_.hosts.at(host).name, why));
    return why.empty();
  };
  const int wanted = (any_entered_ ? settings_.max_ranks : roll_.ranks()) + settings_.spares;
  while (roll_.staying() < wanted) {
    const std::optional<int> host = next_host_.next(roll_, exclusions_, now, can_join);
    if (!host) break;
    Process process;
    process.host = *host;
    process.local_rank = roll_.free_local_rank(*host);
    const int number = next_process_++;
    roll_.processes.emplace(number, process);
    const int place = std::min(roll_.staying(), settings_.max_ranks) - 1;
    actions_.start({number, *host, process.local_rank, place, place + 1, roll_.number_of_host(*host)});
    any = true;
  }
  const bool waits_for_them = settings_.as_horovod && any_entered_ && !forming_ && !notices_.is_outdated(generation_);
  if (any && waits_for_them) notices_.outdate(generation_, /*only_added=*/true);
}

}  // namespace runjob
