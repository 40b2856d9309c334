#include "launcher/elastic/membership.hpp"

#include <algorithm>
#include <set>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "launcher/elastic/elastic_allocation.hpp"

namespace runjob {
namespace {

constexpr auto kNever = Membership::TimePoint::max();
/// The commits after which the failures on a host are forgotten.
constexpr std::int64_t kForgivingCommits = 10;
constexpr const char* kHostsChanged = "the hosts have changed";

double seconds(std::chrono::steady_clock::duration time) {
  return std::chrono::duration<double>(time).count();
}

std::string ranks_count(int count) {
  return count == 1 ? "1 rank" : fmt::format("{} ranks", count);
}

/// "the hosts have changed: rank 2 on s2 has left, rank 3 on s4 has come"
std::string change_text(const std::vector<std::string>& left, const std::vector<std::string>& came) {
  constexpr std::size_t kMostNamed = 4;  // a line that can still be read
  std::vector<std::string> parts;
  const auto add = [&parts](const std::vector<std::string>& names, const char* what) {
    if (names.size() > kMostNamed) return parts.push_back(fmt::format("{} ranks have {}", names.size(), what));
    for (const std::string& name : names) parts.push_back(fmt::format("{} has {}", name, what));
  };
  add(left, "left");
  add(came, "come");
  return parts.empty() ? kHostsChanged : fmt::format("{}: {}", kHostsChanged, fmt::join(parts, ", "));
}

/// How many members a generation may have when so many processes are ready: spares are kept, unless they replace lost
/// members.
int most_members(const ElasticSettings& settings, int target, int ready) {
  return std::min(settings.max_ranks, std::max(target, ready - settings.spares));
}

/// A host that can take another process: first one on which a process failed.
std::optional<int> host_with_room(const ProcessRoll& roll, const Exclusions& exclusions, std::vector<int>& wanted,
                                  Membership::TimePoint now) {
  const auto has_room = [&](int host) {
    const ProcessRoll::HostState& state = roll.hosts.at(host);
    return state.usable && !exclusions.is_excluded(host, now) && roll.count_on(host) < state.slots;
  };
  while (!wanted.empty()) {
    const int host = wanted.front();
    wanted.erase(wanted.begin());
    if (has_room(host)) return host;
  }
  for (const auto& [host, state] : roll.hosts) {
    if (has_room(host)) return host;
  }
  return std::nullopt;
}

}  // namespace

Membership::Membership(const Allocation& allocation, ElasticSettings settings, std::chrono::milliseconds start_timeout,
                       Actions actions)
    : settings_(std::move(settings)),
      start_timeout_(start_timeout),
      actions_(std::move(actions)),
      exclusions_(settings_.cooldown, settings_.rank_restarts),
      limits_(settings_.reset_limit, settings_.as_horovod),
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

void Membership::ready(int process, const rendezvous::JoinRequest::Ready& ready, TimePoint now) {
  const auto found = roll_.processes.find(process);
  if (found == roll_.processes.end()) return;
  Process& which = found->second;
  which.entered = any_entered_ = true;
  if (!which.stays()) {  // it has not seen the notice
    drop(process);
    return go_on(now);
  }
  which.ready = true;
  which.commit = ready.commit;
  if (which.rank >= 0 && !forming_) {
    const bool planned = notice_.outdated >= generation_;
    const std::string why = ready.reason.empty() ? "it lost its connection to another rank" : ready.reason;
    if (!planned) own_failure_ = true;
    end_generation(planned ? kHostsChanged : fmt::format("{}: {}", roll_.name_of(process), why), planned, now,
                   planned || ready.reason.empty());
  } else if (which.rank < 0 && !forming_) {
    notify_growth();
  }
  go_on(now);
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
    const std::string why = fmt::format("{} {}{}", name, end.how, blame(gone.host, now));
    if (gone.rank >= 0) {
      own_failure_ = own_failure_ || !forming_;
      limits_.lost(1);
      end_generation(why, false, now);
    } else {
      actions_.warn(why);
    }
  }
  if (gone.rank >= 0 && !finishing_) left_.push_back(name);
  go_on(now);
}

void Membership::host_lost(int host, const std::string& text, TimePoint now) {
  exclusions_.exclude(host, now);
  const std::string why =
      fmt::format("{}; {} is excluded {}", text, roll_.hosts[host].name, exclusions_.duration_text(host, now));
  int lost_members = 0;
  for (const auto& [number, process] : roll_.processes) {
    if (process.host != host || process.rank < 0) continue;
    ++lost_members;
    left_.push_back(roll_.name_of(number));
  }
  std::erase_if(roll_.processes, [host](const auto& each) { return each.second.host == host; });
  limits_.lost(lost_members);
  if (lost_members > 0 && absorbs()) {
    end_generation(why, false, now);
  } else if (lost_members == 0) {
    actions_.warn(why);
  }
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
    notice_.leaving.push_back(number);
  }
  if (any_member) plan_change(/*only_added=*/false);
}

Membership::TimePoint Membership::next_deadline(TimePoint now) const {
  return std::min({member_deadline_, newcomer_deadline_, size_deadline_, exclusions_.next_return(now)});
}

void Membership::expire(TimePoint now) {
  if (member_deadline_ <= now) {
    member_deadline_ = kNever;
    for (auto& [number, process] : roll_.processes) {
      if (!process.is_awaited()) continue;
      const std::string name = roll_.name_of(number);
      drop(number);
      actions_.warn(fmt::format("{} has not come back within {:.3g} s after its generation ended; it is replaced{}",
                                name, seconds(start_timeout_), blame(process.host, now)));
    }
  }
  if (size_deadline_ <= now) {
    size_deadline_ = kNever;
    return actions_.finish(fmt::format("{} of at least {} are ready after the {:.3g} s of --elastic-timeout",
                                       roll_.ready_in_order().size(), ranks_count(settings_.min_ranks),
                                       seconds(settings_.timeout)));
  }
  go_on(now);
}

void Membership::replace(int process, const std::string& why, TimePoint now) {
  if (roll_.rank_of(process) < 0 || !absorbs()) return;
  own_failure_ = true;
  const int host = roll_.host_of(process);
  const std::string name = roll_.name_of(process);
  end_generation(fmt::format("{} stalled: {}", name, why), false, now);
  drop(process);
  blame(host, now);
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

/// A rank has failed on the host. Returns the consequence for people, "" if there is none.
std::string Membership::blame(int host, TimePoint now) {
  wanted_hosts_.push_back(host);
  if (!exclusions_.rank_failed(host, now)) return "";
  std::vector<int> others;
  for (const auto& [number, process] : roll_.processes) {
    if (settings_.as_horovod && process.host == host && process.stays()) others.push_back(number);
  }
  for (const int number : others) drop(number);
  return fmt::format("; {} is excluded {}", roll_.hosts[host].name, exclusions_.duration_text(host, now));
}

/// `planned`: the members have been asked to leave the generation at their next commit. The end of a process is often
/// known only after the others have noticed it.
void Membership::end_generation(const std::string& why, bool planned, TimePoint now, bool is_guess) {
  if (!forming_) {
    forming_ = true;
    forming_since_ = now;
    member_deadline_ = now + start_timeout_;
    cause_.clear();
    roll_.make_newcomers_of_absent_members();
  }
  if (cause_.empty() || cause_is_guess_) {
    cause_ = why;
    cause_is_guess_ = is_guess;
  }
  if (planned || notice_.ended >= generation_) return;
  notice_.ended = generation_;
  notice_.reason = why;
  send_notice();
}

/// Sends what has changed in the notice.
void Membership::send_notice() {
  ++notice_.sequence;
  actions_.notify(notice_);
}

/// The members leave the generation at their next commit.
void Membership::plan_change(bool only_added) {
  notice_.only_added = only_added && (notice_.outdated < generation_ || notice_.only_added);
  notice_.outdated = generation_;
  send_notice();
}

/// Enough newcomers are ready for a larger generation.
void Membership::notify_growth() {
  if (finishing_ || notice_.outdated >= generation_) return;
  const int ready = roll_.ranks() + roll_.ready_newcomers();
  if (std::min(ready, most_members(settings_, target_, ready)) > roll_.ranks()) plan_change(/*only_added=*/true);
}

void Membership::go_on(TimePoint now) {
  if (finishing_ || !any_entered_) {
    if (roll_.ranks() == 0) actions_.finish("");
    return;
  }
  if (!forming_ && roll_.ranks() == 0) end_generation("all of its members have left", true, now);
  start_missing(now);
  form_if_ready(now);
}

void Membership::form_if_ready(TimePoint now) {
  if (!forming_) return;
  for (const auto& [number, process] : roll_.processes) {
    if (process.is_awaited()) return;
  }
  member_deadline_ = kNever;
  if (settings_.as_horovod && roll_.any_on_its_way()) {
    newcomer_deadline_ = forming_since_ + settings_.timeout;
    if (now < newcomer_deadline_) return;
  }
  newcomer_deadline_ = kNever;
  std::vector<int> next = roll_.ready_in_order();
  const int count =
      std::min(static_cast<int>(next.size()), most_members(settings_, target_, static_cast<int>(next.size())));
  next.resize(static_cast<std::size_t>(count));
  if (count >= settings_.min_ranks) return form(next, now);
  const bool may_grow =
      roll_.any_on_its_way() || !settings_.discovery_script.empty() || exclusions_.next_return(now) != kNever;
  if (!may_grow) {
    return actions_.finish(fmt::format("{} of at least {} are left, and no host can take another one: {}", count,
                                       ranks_count(settings_.min_ranks), cause_));
  }
  if (size_deadline_ != kNever) return;
  size_deadline_ = now + settings_.timeout;
  actions_.warn(fmt::format("{} of at least {} are ready; waiting up to {:.3g} s for more: {}", count,
                            ranks_count(settings_.min_ranks), seconds(settings_.timeout), cause_));
}

void Membership::form(const std::vector<int>& next, TimePoint now) {
  GenerationLimits::Next limits;
  limits.newest_commit = roll_.processes.at(next.front()).commit;
  std::set<int> newcomers;
  for (const int number : next) {
    if (roll_.rank_of(number) < 0) newcomers.insert(number);
  }
  limits.newcomers = static_cast<int>(newcomers.size());
  limits.after_loss = notice_.ended >= generation_;
  limits.own_failure = own_failure_;
  if (const std::string why = limits_.refuse(limits, cause_); !why.empty()) return actions_.finish(why);
  if (newcomers.size() == next.size()) {
    actions_.warn(
        "all ranks of the last generation were lost, and the state of their last commit with them; the script begins "
        "anew, from its own checkpoint if it has one");
  }
  ++generation_;
  Generation formed;
  formed.number = generation_;
  formed.left = std::exchange(left_, {});
  for (const auto& [number, process] : roll_.processes) {
    if (process.rank >= 0 && !process.stays()) formed.left.push_back(roll_.name_of(number));
  }
  for (auto& [number, process] : roll_.processes) process.rank = -1;
  for (const int number : next) {
    Process& process = roll_.processes.at(number);
    process.rank = static_cast<int>(formed.members.size());
    process.ready = false;
    formed.members.push_back({number, process.host, process.local_rank, process.commit});
    if (newcomers.contains(number)) formed.came.push_back(roll_.name_of(number));
    if (limits_.commits_until(limits.newest_commit) >= kForgivingCommits) exclusions_.forgive(process.host);
  }
  limits_.formed(limits.newest_commit);
  target_ = std::min(settings_.max_ranks, std::max(target_, static_cast<int>(next.size())));
  formed.cause = cause_ == kHostsChanged ? change_text(formed.left, formed.came) : cause_;
  formed.stood_still = now - forming_since_;
  formed.told =
      fmt::format("{} after {:.2f} s: {}", ranks_count(roll_.ranks()), seconds(formed.stood_still), formed.cause);
  forming_ = own_failure_ = false;
  member_deadline_ = newcomer_deadline_ = size_deadline_ = kNever;
  actions_.form(formed);
  notify_growth();
}

void Membership::start_missing(TimePoint now) {
  bool any = false;
  const int wanted = (any_entered_ ? settings_.max_ranks : roll_.ranks()) + settings_.spares;
  while (roll_.staying() < wanted) {
    const std::optional<int> host = host_with_room(roll_, exclusions_, wanted_hosts_, now);
    if (!host) break;
    Process process;
    process.host = *host;
    process.local_rank = roll_.free_local_rank(*host);
    const int number = next_process_++;
    roll_.processes.emplace(number, process);
    const int place = std::min(roll_.staying(), settings_.max_ranks) - 1;
    actions_.start({number, *host, process.local_rank, place, place + 1});
    any = true;
  }
  const bool waits_for_them = settings_.as_horovod && any_entered_ && !forming_ && notice_.outdated < generation_;
  if (any && waits_for_them) plan_change(/*only_added=*/true);
}

}  // namespace runjob
