#include "runtime/negotiation/negotiation.hpp"

#include <algorithm>
#include <functional>
#include <map>
#include <utility>

#include <fmt/format.h>

#include "base/error.hpp"

namespace runjob::runtime {
namespace {

std::string wire_text(const Signature& signature, const Members&) {
  return signature.wire ? fmt::format("compression to {}", to_string(*signature.wire)) : "none";
}

/// A group of one tensor differs from that tensor alone.
std::string group_text(const Signature& signature, const Members&) {
  return signature.group.empty() ? "no group" : std::to_string(signature.group.size());
}

std::string scale_text(const Signature& signature, const Members&) {
  return fmt::format("prescale {} and postscale {}", signature.prescale, signature.postscale);
}

/// The part of the shape that the ranks must agree on.
std::string shape_text(const Signature& signature, const Members&) {
  if (!has_own_first_extent(signature.kind) || signature.shape.empty()) return to_string(signature.shape);
  std::string text = "[*";
  for (std::size_t i = 1; i < signature.shape.size(); ++i) text += fmt::format(", {}", signature.shape[i]);
  return text + "]";
}

/// A property that must be equal on all ranks, as text: equal texts mean equal values.
struct Property {
  const char* name;
  std::string (*text)(const Signature&, const Members&);
};

constexpr Property kProperties[] = {
    {"kind of operation", [](const Signature& s, const Members&) { return std::string(to_string(s.kind)); }},
    {"number of tensors in the group", group_text},
    {"dtype", [](const Signature& s, const Members&) { return std::string(to_string(s.dtype)); }},
    {"shape", shape_text},
    {"reduction", [](const Signature& s, const Members&) { return std::string(to_string(s.op)); }},
    {"root", [](const Signature& s, const Members& members) { return fmt::format("rank {}", members.rank(s.root)); }},
    {"scaling", scale_text},
    {"compression", wire_text},
    {"memory", [](const Signature& s, const Members&) { return std::string(to_string(s.memory)); }},
};

std::string disagreement(const std::string& name, const std::vector<Signature>& signatures, const Members& members) {
  for (const Property& property : kProperties) {
    std::vector<std::string> texts;
    for (const Signature& signature : signatures) texts.push_back(property.text(signature, members));
    if (std::adjacent_find(texts.begin(), texts.end(), std::not_equal_to<>()) == texts.end()) continue;
    return fmt::format("{}: the ranks disagree on the {}: {}", operation_text(name, signatures.front()), property.name,
                       values_text(texts, members));
  }
  return {};
}

/// The disagreement on the first tensor that differs; the ranks agree on the number of tensors.
std::string disagreement_in_group(const std::string& name, const std::vector<Signature>& signatures,
                                  const Members& members) {
  const std::size_t count = signatures.front().group.size();
  for (std::size_t tensor = 0; tensor < count; ++tensor) {
    std::vector<Signature> of_tensor;
    for (const Signature& signature : signatures) of_tensor.push_back(signature_of(signature, tensor));
    std::string text = disagreement(tensor_name(name, tensor, count), of_tensor, members);
    if (!text.empty()) return text;
  }
  return {};
}

/// Refuses a concatenation that cannot exist. `rows`: the contribution of each rank; `signature`: that of any rank.
Status check_result(const std::string& name, Signature signature, const std::vector<std::int64_t>& rows) {
  std::int64_t total = 0;
  for (const std::int64_t each : rows) {
    if (!__builtin_add_overflow(total, each, &total)) continue;
    return Status(Errc::kInvalidArgument,
                  fmt::format("{}: the result has too many elements", operation_text(name, signature)));
  }
  signature.kind = Kind::kAllgather;
  signature.shape.front() = total;
  try {
    check_operation(name, signature, static_cast<int>(rows.size()));
    return {};
  } catch (const Error& error) {
    return Status(error);
  }
}

}  // namespace

std::string mismatch(const std::string& name, const std::vector<Signature>& signatures, const Members& members) {
  const Signature& first = signatures.front();
  const bool all_alike = std::all_of(signatures.begin(), signatures.end(), [&](const Signature& other) {
    return !has_own_first_extent(first.kind) && other == first;
  });
  if (all_alike) return {};
  std::string text = disagreement(name, signatures, members);
  return text.empty() ? disagreement_in_group(name, signatures, members) : text;
}

Negotiation::Negotiation(Members members, OnAgreement on_agreement)
    : members_(std::move(members)), on_agreement_(std::move(on_agreement)), outstanding_(members_.size()) {}

std::vector<Decision> Negotiation::take() {
  return std::exchange(decisions_, {});
}

void Negotiation::submit(int rank, const Request& request) {
  if (request.signature.kind == Kind::kJoin) return join(rank);
  if (has_ended(request.signature.process_set)) return;
  Tally& tally = tallies_[request.name];
  if (tally.ready_count == 0) tally.serial = ++tally_count_;
  tally.process_set = request.signature.process_set;
  tally.signatures.resize(members_.size());
  tally.ready.resize(members_.size());
  const auto index = static_cast<std::size_t>(rank);
  if (tally.ready[index])
    throw Error(Errc::kProtocol, fmt::format("{} submitted '{}' twice", rank_text(rank, members_), request.name));
  tally.signatures[index] = request.signature;
  tally.ready[index] = true;
  ++tally.ready_count;
  ++outstanding_[index];
  if (is_complete(tally)) complete(request.name);
}

bool Negotiation::is_complete(const Tally& tally) const {
  const auto excused = std::count_if(joined_.begin(), joined_.end(), [&](int rank) { return is_excused(rank, tally); });
  return tally.ready_count + static_cast<std::size_t>(excused) == members_.size();
}

/// True for a rank that has joined and not submitted the operation.
bool Negotiation::is_excused(int rank, const Tally& tally) const {
  return !tally.ready[static_cast<std::size_t>(rank)] && joined_.contains(rank) &&
         tally.process_set == members_.process_set();
}

void Negotiation::forget_requests(const Tally& tally) {
  for (std::size_t rank = 0; rank < members_.size(); ++rank) outstanding_[rank] -= tally.ready[rank] ? 1 : 0;
}

void Negotiation::end_set(int process_set) {
  ended_sets_.insert(process_set);
  std::erase_if(tallies_, [&](const auto& each) {
    if (each.second.process_set != process_set) return false;
    forget_requests(each.second);
    return true;
  });
}

void Negotiation::complete(const std::string& name) {
  const Tally& tally = tallies_.at(name);
  decisions_.push_back(decide(name, tally));
  forget_requests(tally);
  const bool all_ready = tally.ready_count == members_.size();
  if (on_agreement_ && all_ready && decisions_.back().type == Decision::Type::kExecute) {
    on_agreement_(name, tally.signatures);
  }
  tallies_.erase(name);
}

/// Completes the operations that waited for this rank alone, the oldest first.
void Negotiation::join(int rank) {
  if (!joined_.insert(rank).second)
    throw Error(Errc::kProtocol, fmt::format("{} joined twice", rank_text(rank, members_)));
  ++outstanding_[static_cast<std::size_t>(rank)];
  std::map<std::uint64_t, std::string> complete_now;
  for (const auto& [name, tally] : tallies_) {
    if (is_complete(tally)) complete_now.emplace(tally.serial, name);
  }
  for (const auto& [serial, name] : complete_now) complete(name);
  if (joined_.size() < members_.size()) return;
  joined_.clear();
  for (int& each : outstanding_) --each;
  Decision decision;
  decision.name = kJoinName;
  decision.first_extents = {rank};
  decisions_.push_back(std::move(decision));
}

std::vector<int> Negotiation::missing(const std::string& name) const {
  const auto found = tallies_.find(name);
  return found == tallies_.end() ? std::vector<int>() : missing(found->second);
}

std::vector<int> Negotiation::missing(const Tally& tally) const {
  std::vector<int> result;
  for (int rank = 0; rank < static_cast<int>(members_.size()); ++rank) {
    if (!tally.ready[static_cast<std::size_t>(rank)] && !is_excused(rank, tally)) result.push_back(rank);
  }
  return result;
}

/// The obstacles of all ranks that have one, as a status with the code of the first.
Status Negotiation::obstacle(const std::string& name, const Tally& tally) const {
  constexpr std::size_t kMostNamed = 4;
  Errc code = Errc::kOk;
  std::string text;
  std::size_t count = 0;
  for (std::size_t rank = 0; rank < members_.size(); ++rank) {
    if (!tally.ready[rank] || tally.signatures[rank].obstacle.ok()) continue;
    const Signature& signature = tally.signatures[rank];
    if (count == 0) code = signature.obstacle.code();
    if (count == 0) text = operation_text(name, signature) + ": ";
    if (++count > kMostNamed) continue;
    text += fmt::format("{}{} cannot run it: {}", count == 1 ? "" : "; ", rank_text(static_cast<int>(rank), members_),
                        signature.obstacle.message());
  }
  if (count > kMostNamed) text += fmt::format("; and {} more ranks", count - kMostNamed);
  return count == 0 ? Status() : Status(code, text);
}

Decision Negotiation::decide(const std::string& name, const Tally& tally) const {
  Decision decision;
  decision.name = name;
  decision.status = obstacle(name, tally);
  if (!decision.status.ok()) {
    decision.type = Decision::Type::kReject;
    return decision;
  }
  if (tally.ready_count < members_.size()) return decide_without_joined(name, tally);
  const std::string disagreement = mismatch(name, tally.signatures, members_);
  if (!disagreement.empty()) {
    decision.type = Decision::Type::kReject;
    decision.status = Status(Errc::kMismatch, disagreement);
  } else if (tally.signatures.front().kind == Kind::kAllgather) {
    decide_allgather(name, tally, decision);
  } else if (tally.signatures.front().kind == Kind::kAlltoall) {
    decision = decide_alltoall(name, tally);
  }
  if (!decision.status.ok()) decision.type = Decision::Type::kReject;
  return decision;
}

/// Decides on the requests of the ranks that are ready; the others have joined.
Decision Negotiation::decide_without_joined(const std::string& name, const Tally& tally) const {
  Decision decision;
  decision.name = name;
  const auto first =
      static_cast<std::size_t>(std::find(tally.ready.begin(), tally.ready.end(), true) - tally.ready.begin());
  std::vector<Signature> signatures = tally.signatures;
  int joined = 0;
  for (std::size_t rank = 0; rank < members_.size(); ++rank) {
    if (tally.ready[rank]) continue;
    signatures[rank] = tally.signatures[first];
    joined = static_cast<int>(rank);
  }
  const Signature& signature = tally.signatures[first];
  const std::string disagreement = mismatch(name, signatures, members_);
  if (!disagreement.empty()) {
    decision.status = Status(Errc::kMismatch, disagreement);
  } else if (signature.kind != Kind::kAllreduce && signature.kind != Kind::kBarrier) {
    decision.status =
        Status(Errc::kMismatch, fmt::format("{}: {} has joined, and only allreduce goes on without it",
                                            operation_text(name, signature), rank_text(joined, members_)));
  } else {
    decision.for_joined = std::make_shared<Signature>(signature);
  }
  if (!decision.status.ok()) decision.type = Decision::Type::kReject;
  return decision;
}

/// Collects how many rows each rank has of each tensor; every result must be possible.
void Negotiation::decide_allgather(const std::string& name, const Tally& tally, Decision& decision) const {
  const Signature& first = tally.signatures.front();
  const std::size_t count = tensor_count(first);
  for (std::size_t tensor = 0; tensor < count && decision.status.ok(); ++tensor) {
    std::vector<std::int64_t> rows;
    for (const Signature& signature : tally.signatures)
      rows.push_back((signature.group.empty() ? signature.shape : signature.group[tensor].shape).front());
    decision.status =
        check_result(first.group.empty() ? name : tensor_name(name, tensor, count), signature_of(first, tensor), rows);
    decision.first_extents.insert(decision.first_extents.end(), rows.begin(), rows.end());
  }
}

/// Collects how many rows each rank sends to each other one; every rank's result must be possible.
Decision Negotiation::decide_alltoall(const std::string& name, const Tally& tally) const {
  Decision decision;
  decision.name = name;
  const std::size_t size = members_.size();
  for (std::size_t rank = 0; rank < size; ++rank) {
    const Shape& splits = tally.signatures[rank].splits;
    if (splits.size() != size) {
      decision.status =
          Status(Errc::kProtocol,
                 fmt::format("{}: {} gave {} splits to {} ranks", operation_text(name, tally.signatures[rank]),
                             rank_text(static_cast<int>(rank), members_), splits.size(), size));
      return decision;
    }
    decision.first_extents.insert(decision.first_extents.end(), splits.begin(), splits.end());
  }
  for (std::size_t receiver = 0; receiver < size && decision.status.ok(); ++receiver) {
    std::vector<std::int64_t> rows;
    for (std::size_t sender = 0; sender < size; ++sender)
      rows.push_back(decision.first_extents[sender * size + receiver]);
    decision.status = check_result(name, tally.signatures.front(), rows);
  }
  return decision;
}

}  // namespace runjob::runtime
