#include "runtime/negotiation/response_cache.hpp"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <utility>

#include "base/error.hpp"
#include "runtime/negotiation/fnv1a.hpp"

namespace runjob::runtime {
namespace {

/// One of `places`, for a name.
std::size_t hash_place(std::string_view name, std::size_t places) {
  std::uint64_t first = 0, last = 0;
  if (name.size() >= sizeof first) {
    std::memcpy(&first, name.data(), sizeof first);
    std::memcpy(&last, name.data() + name.size() - sizeof last, sizeof last);
  } else {
    for (const char each : name) first = first << 8 | static_cast<unsigned char>(each);
  }
  constexpr std::uint64_t kGoldenRatio = 0x9E3779B97F4A7C15;  // Knuth's multiplicative hashing
  return ((first + last * 3 + name.size()) * kGoldenRatio >> 32) % places;
}

bool all_equal(const std::vector<Signature>& signatures) {
  return std::all_of(signatures.begin(), signatures.end(), [&](const Signature& s) { return s == signatures.front(); });
}

}  // namespace

ResponseCache::ResponseCache(int rank, std::size_t size, std::size_t capacity)
    : rank_(rank), size_(size), capacity_(capacity), outstanding_(size) {}

std::optional<ResponseCache::Id> ResponseCache::find(std::string_view name) const {
  Id& likely = looked_up_[hash_place(name, looked_up_.size())];
  if (likely < slots_.size() && !name.empty() && slots_[likely].decision.name == name) return likely;
  const auto found = ids_.find(name);
  if (found == ids_.end()) return std::nullopt;
  return likely = found->second;
}

std::optional<ResponseCache::Id> ResponseCache::find(std::string_view name, const Signature& signature) const {
  const auto id = find(name);
  return id && signature_of(*id, rank_) == signature ? id : std::nullopt;
}

std::optional<ResponseCache::Id> ResponseCache::find(std::string_view name, const SignatureView& signature) const {
  const auto id = find(name);
  return id && describes(signature, signature_of(*id, rank_)) ? id : std::nullopt;
}

std::uint64_t ResponseCache::hash_of(Id id) const {
  Signature common = signature_of(id, 0);
  if (has_own_first_extent(common.kind)) common = {.kind = common.kind, .dtype = common.dtype};
  return fnv1a(encode(slots_[id].decision) + encode(Request{name(id), common}));
}

std::optional<ResponseCache::Id> ResponseCache::remember(const Decision& decision, std::vector<Signature> signatures) {
  std::optional<Id> forgotten;
  if (decision.name.empty() || find(decision.name)) return forgotten;
  if (ages_.size() >= capacity_) {
    const auto oldest = std::find_if(ages_.rbegin(), ages_.rend(), [&](Id id) { return !is_announced(id); });
    if (oldest == ages_.rend()) return forgotten;
    forgotten = *oldest;
    forget(*forgotten);
  }
  const Id id = take_free_slot();
  Slot& slot = slots_[id];
  slot.decision = decision;
  slot.signatures = std::move(signatures);
  if (all_equal(slot.signatures)) slot.signatures.resize(1);
  const Signature& own = signature_of(id, rank_);
  const int size = static_cast<int>(size_);
  slot.largest_input = runtime::largest_input(own, decision);
  slot.own = own_message_of(own, rank_, size);
  slot.reduced_bytes = own.kind == Kind::kAllreduce ? input_bytes(own, std::nullopt) : 0;
  if (own.group.empty()) slot.prepared = prepare_operation(own, decision, rank_, size);
  slot.announced.assign(size_, false);
  slot.age = ages_.insert(ages_.begin(), id);
  ids_.emplace(slot.decision.name, id);
  return forgotten;
}

ResponseCache::Id ResponseCache::take_free_slot() {
  if (free_.empty()) {
    free_.push_back(static_cast<Id>(slots_.size()));
    slots_.emplace_back();
  }
  const Id id = free_.back();
  free_.pop_back();
  return id;
}

void ResponseCache::forget(Id id) {
  Slot& slot = slots_[id];
  ids_.erase(slot.decision.name);
  ages_.erase(slot.age);
  slot = {};
  free_.push_back(id);
}

std::optional<bool> ResponseCache::announce(Id id, int rank, bool begins) {
  Slot& slot = slots_[id];
  const auto index = static_cast<std::size_t>(rank);
  if (slot.announced[index]) throw Error(Errc::kProtocol, "a rank announced an operation twice");
  slot.announced[index] = true;
  slot.begins = slot.begins || begins;
  ++outstanding_[index];
  if (++slot.announced_count < size_) return std::nullopt;
  const bool any_begins = slot.begins;
  clear_announcements(slot);
  return any_begins;
}

std::vector<int> ResponseCache::withdraw(Id id) {
  std::vector<int> ranks;
  for (std::size_t rank = 0; rank < size_; ++rank) {
    if (slots_[id].announced[rank]) ranks.push_back(static_cast<int>(rank));
  }
  clear_announcements(slots_[id]);
  return ranks;
}

void ResponseCache::clear_announcements(Slot& slot) {
  for (std::size_t rank = 0; rank < size_; ++rank) outstanding_[rank] -= slot.announced[rank] ? 1 : 0;
  slot.announced.assign(size_, false);
  slot.announced_count = 0;
  slot.begins = false;
}

std::vector<int> ResponseCache::missing(Id id) const {
  std::vector<int> ranks;
  for (std::size_t rank = 0; rank < size_; ++rank) {
    if (!slots_[id].announced[rank]) ranks.push_back(static_cast<int>(rank));
  }
  return ranks;
}

std::vector<ResponseCache::Id> ResponseCache::announced() const {
  std::vector<Id> ids;
  std::copy_if(ages_.begin(), ages_.end(), std::back_inserter(ids), [&](Id id) { return is_announced(id); });
  return ids;
}

std::vector<ResponseCache::Id> ResponseCache::ids_of(int process_set) const {
  std::vector<Id> ids;
  std::copy_if(ages_.begin(), ages_.end(), std::back_inserter(ids),
               [&](Id id) { return signature_of(id, 0).process_set == process_set; });
  return ids;
}

}  // namespace runjob::runtime
