#include "launcher/elastic/membership.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

namespace runjob {
namespace {

constexpr auto kNever = Membership::TimePoint::max();
/// The commits after which the failures on a host are forgotten.
constexpr std::int64_t kForgivingCommits = 10;
/// The job ends after so many generations in a row that a rank's own failure ended, without a commit.
constexpr int kMostWithoutProgress = 5;

double seconds(std::chrono::steady_clock::duration time) {
  return std::chrono::duration<double>(time).count();
}

std::string ranks_count(int count) {
  return count == 1 ? "1 rank" : fmt::format("{} ranks", count);
}

}  // namespace

Membership::Membership(const Allocation& allocation, ElasticSettings settings, std::chrono::milliseconds start_timeout,
                       Actions& actions)
    : settings_(std::move(settings)),
      start_timeout_(start_timeout),
      actions_(actions),
      exclusions_(settings_.cooldown, settings_.rank_restarts),
      next_process_(static_cast<int>(allocation.placements.size())) {
  for (std::size_t i = 0; i < allocation.hosts.size(); ++i)
    roll_.hosts[static_cast<int>(i)] = {allocation.hosts[i].name, allocation.hosts[i].slots, true};
  for (const Placement& each : allocation.placements) {
    Process& process = roll_.processes[each.rank];
    process.host = each.host;
    process.local_rank = each.local_rank;
    process.rank = each.rank;
  }
}

void Membership::entered(int process) {
  const auto found = roll_.processes.find(process);
  if (found == roll_.processes.end()) return;
  found->second.entered = any_entered_ = true;
}

void Membership::ready(int process, const rendezvous::JoinRequest::Ready& ready, TimePoint now) {
  const auto found = roll_.processes.find(process);
  if (found == roll_.processes.end()) return;
  Process& which = found->second;
  which.entered = any_entered_ = true;
  if (!which.stays()) {  // it has not seen the notice
    which.ending = true;
    which.rank = -1;
    actions_.end(process);
    return go_on(now);
  }
  which.ready = true;
  which.commit = ready.commit;
  if (which.rank >= 0 && !forming_) {
    const bool planned = notice_.outdated >= generation_;
    const std::string why = ready.reason.empty() ? "it lost its connection to another rank" : ready.reason;
    if (!planned) own_failure_ = true;
    end_generation(planned ? "the hosts have changed" : fmt::format("{}: {}", roll_.name_of(process), why), planned,
                   now, planned || ready.reason.empty());
  } else if (which.rank < 0 && !forming_) {
    notify_growth();
  }
  go_on(now);
}

void Membership::exited(int process, const End& end, TimePoint now) {
  const auto found = roll_.processes.find(process);
  if (found == roll_.processes.end()) return;
  const std::string why = fmt::format("{} {}", roll_.name_of(process), end.how);
  const Process gone = found->second;
  roll_.processes.erase(found);
  if (!any_entered_) return go_on(now);  // a static job, whose verdict is made elsewhere
  const bool expected = !gone.stays() || finishing_;
  if (!expected && end.clean && gone.rank >= 0) {
    finishing_ = !forming_;  // else the others have still to do what this one has done
  } else if (!expected) {
    own_failure_ = true;
    const bool excluded = exclusions_.rank_failed(gone.host, now);
    wanted_hosts_.push_back(gone.host);
    const std::string text = excluded ? fmt::format("{}; {} is excluded {}", why, roll_.hosts[gone.host].name,
                                                    exclusions_.duration_text(gone.host, now))
                                      : why;
    if (gone.rank >= 0) {
      ++unreplaced_;
      end_generation(text, false, now);
    } else {
      actions_.warn(text);
    }
  }
  go_on(now);
}

void Membership::host_lost(int host, const std::string& how, TimePoint now) {
  HostState& state = roll_.hosts[host];
  state.usable = false;
  exclusions_.exclude(host, now);
  const std::string why = fmt::format("lost the agent on {}: {}; {} is excluded {}", state.name, how, state.name,
                                      exclusions_.duration_text(host, now));
  int lost_members = 0;
  std::erase_if(roll_.processes, [&](const auto& each) {
    if (each.second.host != host) return false;
    if (each.second.rank >= 0) ++lost_members;
    return true;
  });
  if (!absorbs()) return go_on(now);
  unreplaced_ += lost_members;
  if (lost_members > 0) {
    end_generation(why, false, now);
  } else {
    actions_.warn(why);
  }
  go_on(now);
}

void Membership::add_host(int host, const std::string& name, int slots, TimePoint now) {
  roll_.hosts[host] = {name, slots, true};
  go_on(now);
}

void Membership::remove_host(int host, TimePoint now) {
  roll_.hosts[host].usable = false;
  bool any_member = false;
  for (auto& [number, process] : roll_.processes) {
    if (process.host != host || !process.stays()) continue;
    if (process.rank >= 0 && !process.ready) {
      process.leaving = any_member = true;
      notice_.leaving.push_back(number);
    } else {  // it waits for a generation, or is on its way there
      process.ending = true;
      process.rank = -1;
      actions_.end(number);
    }
  }
  if (any_member) {
    notice_.outdated = generation_;
    notice_.only_added = false;
    send_notice();
  }
  go_on(now);
}

Membership::TimePoint Membership::next_deadline(TimePoint now) const {
  return std::min({member_deadline_, size_deadline_, exclusions_.next_return(now)});
}

void Membership::expire(TimePoint now) {
  if (member_deadline_ <= now) {
    member_deadline_ = kNever;
    for (auto& [number, process] : roll_.processes) {
      if (!process.is_awaited()) continue;
      actions_.warn(fmt::format("{} has not come back within {:.3g} s after its generation ended; it is replaced",
                                roll_.name_of(number), seconds(start_timeout_)));
      give_up(number, now);
    }
  }
  if (size_deadline_ <= now) {
    size_deadline_ = kNever;
    return actions_.finish(fmt::format("{} of at least {} are ready after the {:.3g} s of --elastic-timeout",
                                       next_members().size(), ranks_count(settings_.min_ranks),
                                       seconds(settings_.timeout)));
  }
  go_on(now);
}

void Membership::replace(int process, const std::string& why, TimePoint now) {
  if (roll_.rank_of(process) < 0 || !absorbs()) return;
  own_failure_ = true;
  end_generation(fmt::format("{} stalled: {}", roll_.name_of(process), why), false, now);
  give_up(process, now);
  go_on(now);
}

/// Ends a member and has another process take its place.
void Membership::give_up(int number, TimePoint now) {
  Process& process = roll_.processes.at(number);
  exclusions_.rank_failed(process.host, now);
  wanted_hosts_.push_back(process.host);
  process.ending = true;
  process.rank = -1;
  ++unreplaced_;
  actions_.end(number);
}

/// `planned`: the members have been asked to leave the generation at their next commit. The end of a process is often
/// known only after the others have noticed it.
void Membership::end_generation(const std::string& why, bool planned, TimePoint now, bool is_guess) {
  if (!forming_) {
    forming_ = true;
    forming_since_ = now;
    member_deadline_ = now + start_timeout_;
    cause_.clear();
    make_newcomers_of_absent_members();
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

/// A member that has not entered elastic.run() yet need not be waited for.
void Membership::make_newcomers_of_absent_members() {
  for (auto& [number, process] : roll_.processes) {
    if (!process.entered) process.rank = -1;
  }
}

/// Sends what has changed in the notice.
void Membership::send_notice() {
  ++notice_.sequence;
  actions_.notify(notice_);
}

void Membership::notify_growth() {
  if (finishing_ || roll_.ranks() >= settings_.max_ranks || notice_.outdated >= generation_) return;
  notice_.outdated = generation_;
  notice_.only_added = true;
  send_notice();
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
  const int count = static_cast<int>(next_members().size());
  if (count >= settings_.min_ranks) return form(now);
  if (!may_grow(now)) {
    return actions_.finish(fmt::format("{} of at least {} are left, and no host can take another one: {}", count,
                                       ranks_count(settings_.min_ranks), cause_));
  }
  if (size_deadline_ != kNever) return;
  size_deadline_ = now + settings_.timeout;
  actions_.warn(fmt::format("{} of at least {} are ready; waiting up to {:.3g} s for more: {}", count,
                            ranks_count(settings_.min_ranks), seconds(settings_.timeout), cause_));
}

std::vector<int> Membership::next_members() const {
  std::vector<int> next = roll_.ready_in_order();
  if (std::ssize(next) > settings_.max_ranks) next.resize(static_cast<std::size_t>(settings_.max_ranks));
  return next;
}

void Membership::form(TimePoint now) {
  const std::vector<int> next = next_members();
  const std::int64_t newest = roll_.processes.at(next.front()).commit;
  const bool progress = newest > newest_commit_;
  without_progress_ = own_failure_ && !progress ? without_progress_ + 1 : 0;
  if (without_progress_ >= kMostWithoutProgress) {
    return actions_.finish(
        fmt::format("{} generations in a row have ended by a failure before their first commit, the last one because "
                    "{}",
                    without_progress_, cause_));
  }
  if (counts_as_reset(next) && settings_.reset_limit && ++resets_ > *settings_.reset_limit) {
    return actions_.finish(
        fmt::format("the {} new generations of --reset-limit are used up: {}", *settings_.reset_limit, cause_));
  }
  ++generation_;
  Generation formed;
  formed.number = generation_;
  for (auto& [number, process] : roll_.processes) process.rank = -1;
  for (const int number : next) {
    Process& process = roll_.processes.at(number);
    process.rank = static_cast<int>(formed.members.size());
    process.ready = false;
    formed.members.push_back({number, process.host, process.local_rank, process.commit});
    if (newest - newest_commit_ >= kForgivingCommits) exclusions_.forgive(process.host);
  }
  newest_commit_ = newest;
  formed.told = fmt::format("{} after {:.2f} s: {}", ranks_count(roll_.ranks()), seconds(now - forming_since_), cause_);
  forming_ = own_failure_ = false;
  member_deadline_ = size_deadline_ = kNever;
  actions_.form(formed);
  const bool more = std::any_of(roll_.processes.begin(), roll_.processes.end(), [](const auto& each) {
    return each.second.ready && each.second.rank < 0 && !each.second.ending;
  });
  if (more) notify_growth();
}

/// A loss and the growth that replaces the lost ranks are one reset.
bool Membership::counts_as_reset(const std::vector<int>& next) {
  const auto newcomers = static_cast<int>(
      std::count_if(next.begin(), next.end(), [this](int number) { return roll_.processes.at(number).rank < 0; }));
  const bool lost_some = notice_.ended >= generation_;
  const bool only_replaces = newcomers > 0 && newcomers <= unreplaced_ && !lost_some;
  unreplaced_ = std::max(0, unreplaced_ - newcomers);
  return !only_replaces;
}

void Membership::start_missing(TimePoint now) {
  while (roll_.staying() < settings_.max_ranks) {
    const std::optional<int> host = host_for_next(now);
    if (!host) return;
    Process process;
    process.host = *host;
    process.local_rank = roll_.free_local_rank(*host);
    const int number = next_process_++;
    roll_.processes.emplace(number, process);
    actions_.start({number, *host, process.local_rank, roll_.staying() - 1, roll_.staying()});
  }
}

/// A host that can take another process: first one on which a process failed.
std::optional<int> Membership::host_for_next(TimePoint now) {
  const auto has_room = [&](int host) {
    const HostState& state = roll_.hosts[host];
    return state.usable && !exclusions_.is_excluded(host, now) && roll_.count_on(host) < state.slots;
  };
  while (!wanted_hosts_.empty()) {
    const int host = wanted_hosts_.front();
    wanted_hosts_.erase(wanted_hosts_.begin());
    if (has_room(host)) return host;
  }
  for (const auto& [host, state] : roll_.hosts) {
    if (has_room(host)) return host;
  }
  return std::nullopt;
}

/// Another process may become ready, now or later.
bool Membership::may_grow(TimePoint now) const {
  const bool any_on_its_way = std::any_of(roll_.processes.begin(), roll_.processes.end(),
                                          [](const auto& each) { return !each.second.ready && each.second.stays(); });
  return any_on_its_way || !settings_.discovery_script.empty() || exclusions_.next_return(now) != kNever;
}

}  // namespace runjob
