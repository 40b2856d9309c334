#include "rendezvous/server/roster.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace runjob::rendezvous {
namespace {

constexpr std::size_t kShown = 10;

}  // namespace

Roster::Roster(std::vector<std::string> hosts, std::chrono::milliseconds start_timeout)
    : members_(hosts.size()), start_timeout_(start_timeout) {
  for (std::size_t i = 0; i < hosts.size(); ++i) members_[i].host = std::move(hosts[i]);
  counts_[static_cast<std::size_t>(Stage::kNotStarted)] = size();
}

Roster::Member* Roster::find(int rank) {
  return rank >= 0 && rank < size() ? &members_[static_cast<std::size_t>(rank)] : nullptr;
}

void Roster::move_to(Member& member, Stage stage) {
  --counts_[static_cast<std::size_t>(member.stage)];
  ++counts_[static_cast<std::size_t>(stage)];
  member.stage = stage;
}

void Roster::started(int rank, long pid, TimePoint now) {
  Member* member = find(rank);
  if (member == nullptr) return;
  // The report of a join may arrive before the report of the start, because they take different paths.
  if (member->stage != Stage::kJoined || member->pid != 0) {
    move_to(*member, Stage::kStarted);
    member->since = now;
  }
  member->pid = pid;
}

void Roster::joined(int rank, TimePoint now) {
  Member* member = find(rank);
  if (member == nullptr || member->stage == Stage::kExited || member->stage == Stage::kExitedUnjoined) return;
  if (member->stage != Stage::kJoined) member->since = now;
  move_to(*member, Stage::kJoined);
  if (!first_join_) first_join_ = now;
}

void Roster::exited(int rank, const std::string& how) {
  Member* member = find(rank);
  if (member == nullptr) return;
  move_to(*member, member->stage == Stage::kJoined ? Stage::kExited : Stage::kExitedUnjoined);
  member->how_exited = how;
  if (count(Stage::kJoined) == 0) first_join_.reset();
}

std::string Roster::describe(int rank, TimePoint now) const {
  const Member& member = members_[static_cast<std::size_t>(rank)];
  std::string who = fmt::format("rank {} on {}", rank, member.host);
  switch (member.stage) {
    case Stage::kNotStarted:
      return fmt::format("{}: process not started", who);
    case Stage::kStarted:
      return fmt::format("{} has not called init() for {} (pid {})", who, seconds_text(now - member.since), member.pid);
    case Stage::kJoined:
      return fmt::format("{} has joined", who);
    case Stage::kExitedUnjoined:
      return fmt::format("{} ended without calling init() ({})", who, member.how_exited);
    case Stage::kExited:
      return fmt::format("{}: process exited ({})", who, member.how_exited);
  }
  return who;
}

std::string Roster::why_missing(int rank, const std::string& reaching, TimePoint now) const {
  const Member& member = members_[static_cast<std::size_t>(rank)];
  if (member.stage == Stage::kJoined)
    return fmt::format("rank {} on {} has not reached {}", rank, member.host, reaching);
  return describe(rank, now);
}

std::string Roster::overdue(TimePoint now) const {
  if (!first_join_) return "";
  const bool too_late = now - *first_join_ >= start_timeout_;
  const int pending_ranks = count(Stage::kNotStarted) + count(Stage::kStarted);
  if (count(Stage::kExitedUnjoined) == 0 && (!too_late || pending_ranks == 0)) return "";
  std::vector<std::string> lines;
  for (int rank = 0; rank < size(); ++rank) {
    const Stage stage = members_[static_cast<std::size_t>(rank)].stage;
    const bool pending = stage == Stage::kNotStarted || stage == Stage::kStarted;
    if (stage == Stage::kExitedUnjoined || (too_late && pending)) lines.push_back(describe(rank, now));
  }
  return first_ten(lines, "\n");
}

nlohmann::json Roster::to_json(TimePoint now) const {
  std::vector<std::string> missing;
  for (int rank = 0; rank < size() && missing.size() < kShown; ++rank) {
    const Stage stage = members_[static_cast<std::size_t>(rank)].stage;
    if (stage != Stage::kJoined && stage != Stage::kExited) missing.push_back(describe(rank, now));
  }
  return {{"not_started", count(Stage::kNotStarted)}, {"started", count(Stage::kStarted)},
          {"joined", count(Stage::kJoined)},          {"exited_without_joining", count(Stage::kExitedUnjoined)},
          {"exited", count(Stage::kExited)},          {"not_joined", missing}};
}

std::string first_ten(const std::vector<std::string>& lines, const std::string& separator) {
  const std::size_t shown = std::min(lines.size(), kShown);
  std::string text = fmt::format("{}", fmt::join(lines.begin(), lines.begin() + static_cast<long>(shown), separator));
  if (lines.size() > shown) text += fmt::format("{}and {} more", separator, lines.size() - shown);
  return text;
}

std::string seconds_text(std::chrono::steady_clock::duration time) {
  return fmt::format("{} s", std::chrono::duration_cast<std::chrono::seconds>(time).count());
}

}  // namespace runjob::rendezvous
