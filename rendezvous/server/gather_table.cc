#include "rendezvous/server/gather_table.hpp"

#include <algorithm>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace runjob::rendezvous {
namespace {

constexpr std::size_t kMaxKeptBytes = 32u << 20;  // answers kept for callers whose connection broke

std::size_t cost(const std::string& label, const Arrival& arrival) {
  return kEntryBytes + label.size() + arrival.call.size() + arrival.blob.size();
}

Answers one(Reply reply, Response response) {
  Answers answers;
  answers.push_back({std::move(reply), std::move(response)});
  return answers;
}

std::string caller(const Arrival& arrival) {
  return arrival.rank < 0 ? "a caller without a rank" : fmt::format("rank {}", arrival.rank);
}

}  // namespace

GatherTable::GatherTable(const Roster& roster, StoredBytes& stored)
    : roster_(roster), stored_(stored), answered_(static_cast<std::size_t>(roster.size())) {}

Answers GatherTable::arrive(Kind kind, const std::string& name, Arrival arrival, TimePoint now) {
  const std::string label = fmt::format("{} '{}'", kind == Kind::kGather ? "gather" : "barrier", name);
  if (arrival.rank >= 0 && !arrival.call.empty() &&
      answered_[static_cast<std::size_t>(arrival.rank)].call == arrival.call)
    return repeat_answered(label, std::move(arrival));

  const auto open = open_.find(label);
  if (open != open_.end()) {
    Gather& gather = open->second;
    if (gather.count != arrival.count)
      return one(
          std::move(arrival.reply),
          error_response(409, fmt::format("{}: {} gives the count {}, {} gave {}", label, caller(arrival),
                                          arrival.count, caller(gather.arrivals.begin()->second), gather.count)));
    const auto before = gather.arrivals.find(arrival.index);
    if (before != gather.arrivals.end()) return repeat_open(label, before->second, std::move(arrival));
  }
  if (!stored_.take(cost(label, arrival)))
    return one(
        std::move(arrival.reply),
        error_response(503, fmt::format("{}: the rendezvous holds its limit of {} bytes", label, kMaxStoredBytes)));

  const auto [gather, fresh] = open_.try_emplace(label, Gather{kind, arrival.count, now, arrival.deadline, {}});
  if (!fresh) deadlines_.erase({gather->second.deadline, label});
  gather->second.deadline = std::min(gather->second.deadline, arrival.deadline);
  deadlines_.insert({gather->second.deadline, label});
  const int index = arrival.index;
  gather->second.arrivals.emplace(index, std::move(arrival));
  return std::ssize(gather->second.arrivals) == gather->second.count ? finish(gather) : Answers();
}

/// The answer was lost with the caller's connection, so the caller gets the same answer again.
Answers GatherTable::repeat_answered(const std::string& label, Arrival arrival) {
  const Answered& last = answered_[static_cast<std::size_t>(arrival.rank)];
  if (last.response) return one(std::move(arrival.reply), *last.response);
  return one(std::move(arrival.reply),
             error_response(409, fmt::format("{}: rank {} was answered on a connection that broke, and the answer is "
                                             "no longer kept",
                                             label, arrival.rank)));
}

Answers GatherTable::repeat_open(const std::string& label, Arrival& before, Arrival arrival) {
  if (arrival.call.empty() || arrival.call != before.call || arrival.rank != before.rank)
    return one(std::move(arrival.reply),
               error_response(409, fmt::format("{}: index {} is given twice, by {} and by {}", label, arrival.index,
                                               caller(before), caller(arrival))));
  std::swap(before.reply, arrival.reply);
  return one(std::move(arrival.reply),
             error_response(409, fmt::format("{}: asked again on another connection", label)));
}

Answers GatherTable::finish(Open::iterator gather) {
  std::map<int, Arrival>& arrivals = gather->second.arrivals;
  Response response;
  if (gather->second.kind == Kind::kGather) {
    std::vector<std::string> blobs;
    blobs.reserve(arrivals.size());
    for (const auto& [index, arrival] : arrivals) blobs.push_back(arrival.blob);
    response = {200, "application/cbor", encode_blobs(blobs)};
  }
  const std::size_t share = response.body.size() / arrivals.size() + 1;
  for (const auto& [index, arrival] : arrivals) remember(arrival, response, share);
  return end(gather, response);
}

Answers GatherTable::end(Open::iterator gather, const Response& response) {
  Answers answers;
  for (auto& [index, arrival] : gather->second.arrivals) {
    stored_.give_back(cost(gather->first, arrival));
    answers.push_back({std::move(arrival.reply), response});
  }
  deadlines_.erase({gather->second.deadline, gather->first});
  open_.erase(gather);
  return answers;
}

void GatherTable::remember(const Arrival& arrival, const Response& response, std::size_t share) {
  if (arrival.rank < 0) return;
  Answered& last = answered_[static_cast<std::size_t>(arrival.rank)];
  kept_bytes_ -= last.share;
  last = {arrival.call, 0, std::nullopt};
  if (arrival.call.empty() || share > kMaxKeptBytes - kept_bytes_) return;
  kept_bytes_ += share;
  last = {arrival.call, share, response};
}

Answers GatherTable::expire(TimePoint now) {
  Answers answers;
  while (!deadlines_.empty() && deadlines_.begin()->first <= now) {
    const auto gather = open_.find(deadlines_.begin()->second);
    const std::string text =
        fmt::format("{} ran out of time after {}: {}", gather->first, seconds_text(now - gather->second.first_arrival),
                    missing(gather->first, gather->second, now));
    for (Answer& answer : end(gather, error_response(408, text))) answers.push_back(std::move(answer));
  }
  return answers;
}

Answers GatherTable::close(const Response& response) {
  Answers answers;
  while (!open_.empty())
    for (Answer& answer : end(open_.begin(), response)) answers.push_back(std::move(answer));
  return answers;
}

GatherTable::TimePoint GatherTable::next_deadline() const {
  return deadlines_.empty() ? TimePoint::max() : deadlines_.begin()->first;
}

/// An index names a rank when all ranks take part and those that came gave their rank as index.
std::string GatherTable::missing(const std::string& label, const Gather& gather, TimePoint now) const {
  const bool by_rank = gather.count == roster_.size() &&
                       std::all_of(gather.arrivals.begin(), gather.arrivals.end(), [](const auto& entry) {
                         return entry.second.rank < 0 || entry.second.rank == entry.first;
                       });
  std::vector<std::string> lines;
  for (int index = 0; index < gather.count; ++index) {
    if (gather.arrivals.contains(index)) continue;
    lines.push_back(by_rank ? roster_.why_missing(index, label, now)
                            : fmt::format("index {} of {} has not reached {}", index, gather.count, label));
  }
  return first_ten(lines, "; ");
}

nlohmann::json GatherTable::to_json(TimePoint now) const {
  constexpr std::size_t kShown = 10;
  nlohmann::json list = nlohmann::json::array();
  for (const auto& [label, gather] : open_) {
    if (list.size() == kShown) break;
    list.push_back({{"what", label},
                    {"count", gather.count},
                    {"arrived", gather.arrivals.size()},
                    {"since_seconds", std::chrono::duration<double>(now - gather.first_arrival).count()},
                    {"missing", missing(label, gather, now)}});
  }
  return list;
}

}  // namespace runjob::rendezvous
