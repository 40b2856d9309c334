#include "runtime/negotiation/plans/step_plan.hpp"

#include <algorithm>

namespace runjob::runtime {
namespace {

/// Boost's hash_combine, of 64 bits.
void combine(std::uint64_t& hash, std::uint64_t other) {
  hash ^= other + 0x9E3779B97F4A7C15 + (hash << 12) + (hash >> 4);
}

std::uint32_t hash_of(const std::vector<StepPlan::Id>& ids, std::size_t number, const StepPlan::HashOf& hash_of_id) {
  std::uint64_t hash = number;
  for (const StepPlan::Id id : ids) combine(hash, hash_of_id(id));
  return static_cast<std::uint32_t>(hash ^ hash >> 32) & StepPlan::kHashMask;
}

}  // namespace

StepPlan::StepPlan(const std::vector<Step>& steps, std::size_t bucket_bytes, const HashOf& hash_of_id) {
  std::size_t bytes = 0;
  for (const Step& step : steps) {
    if (buckets_.empty() || step.begins || bytes >= bucket_bytes) {
      buckets_.emplace_back();
      bytes = 0;
    }
    buckets_.back().ids.push_back(step.id);
    bytes += step.bytes;
    ids_.insert(step.id);
  }
  // A single operation has an id, which is as short.
  std::erase_if(buckets_, [](const Bucket& bucket) { return bucket.ids.size() < 2; });
  for (std::size_t number = 0; number < buckets_.size(); ++number)
    buckets_[number].hash = hash_of(buckets_[number].ids, number, hash_of_id);
  index();
}

void StepPlan::index() {
  bucket_of_.clear();
  for (std::size_t number = 0; number < buckets_.size(); ++number) {
    for (const Id id : buckets_[number].ids) {
      if (id >= bucket_of_.size()) bucket_of_.resize(id + 1, kNone);
      bucket_of_[id] = static_cast<std::uint32_t>(number);
    }
  }
}

bool StepPlan::is_of(const std::vector<Step>& steps) const {
  return steps.size() == ids_.size() &&
         std::all_of(steps.begin(), steps.end(), [&](const Step& step) { return contains(step.id); });
}

std::optional<std::size_t> StepPlan::bucket_of(Id id) const {
  if (id >= bucket_of_.size() || bucket_of_[id] == kNone) return std::nullopt;
  return bucket_of_[id];
}

std::optional<std::size_t> StepPlan::find(std::uint32_t hash) const {
  const auto found =
      std::find_if(buckets_.begin(), buckets_.end(), [&](const Bucket& bucket) { return bucket.hash == hash; });
  if (found == buckets_.end()) return std::nullopt;
  return static_cast<std::size_t>(found - buckets_.begin());
}

bool StepPlan::end_cycle() {
  const auto was_agreed = [](const Bucket& bucket) { return bucket.was_agreed; };
  if (!buckets_.empty() && std::all_of(buckets_.begin(), buckets_.end(), was_agreed)) ++followed_;
  for (Bucket& bucket : buckets_) {
    bucket.failures = bucket.was_agreed ? 0 : bucket.failures + 1;
    bucket.was_agreed = false;
  }
  if (std::erase_if(buckets_, [](const Bucket& bucket) { return bucket.failures >= kMostFailures; }) == 0) return false;
  index();
  return has_given_up_ = true;
}

}  // namespace runjob::runtime
