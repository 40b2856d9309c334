#pragma once

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "runtime/negotiation/round_negotiation.hpp"
#include "runtime/negotiation/unnamed_submissions.hpp"
#include "tests/catch.hpp"

namespace runjob::runtime {

inline const Signature kSum{.kind = Kind::kAllreduce, .dtype = DType::kFloat32, .shape = {2, 3}};

inline Signature gather(std::int64_t rows) {
  return {.kind = Kind::kAllgather, .dtype = DType::kFloat32, .shape = {rows, 3}};
}

inline std::string bytes_of(const std::vector<Decision>& decisions) {
  std::string bytes;
  for (const Decision& decision : decisions) bytes += encode(decision);
  return bytes;
}

/// The negotiation of every rank; each receives the announcements of all.
class Ranks {
 public:
  explicit Ranks(int size, std::size_t capacity = 1024, std::size_t most = 4096,
                 NegotiationObserver* observer = nullptr, std::size_t bucket_bytes = 0)
      : most_(most), unnamed_(static_cast<std::size_t>(size)) {
    const std::vector<std::string> hosts(static_cast<std::size_t>(size), "a");
    for (int rank = 0; rank < size; ++rank) {
      all_.push_back(std::make_unique<RoundNegotiation>(
          rank, hosts, RoundNegotiation::Settings{capacity, {.bucket_bytes = bucket_bytes}},
          rank == 0 ? observer : nullptr));
    }
  }

  RoundNegotiation& operator[](std::size_t rank) { return *all_[rank]; }

  void submit(std::size_t rank, const std::string& name, const Signature& signature = kSum) {
    all_[rank]->submit({{name, signature}});
  }

  /// Of an operation without a name; returns its name in flight.
  std::string submit_unnamed(std::size_t rank, const Signature& signature = kSum) {
    auto next = unnamed_[rank].next(signature.process_set, UnnamedSubmissions::hash_of(signature));
    all_[rank]->submit({{next.key, signature}});
    return next.name;
  }

  /// One round; the decisions of rank 0, after a check that all ranks decide alike.
  std::vector<Decision> round() {
    std::vector<std::optional<RoundNegotiation::Bucket>> buckets;
    std::vector<std::string> messages;
    for (auto& rank : all_) {
      buckets.push_back(rank->take_bucket());
      messages.push_back(buckets.back() ? "" : rank->take_bytes(most_));
    }
    bytes_ = messages[0].size();
    const bool is_planned = buckets[0] && std::count(buckets.begin(), buckets.end(), buckets[0]) == std::ssize(buckets);
    planned_ += is_planned ? 1 : 0;
    std::vector<std::vector<Decision>> decisions;
    for (auto& listener : all_) {
      auto agreed = is_planned ? listener->agree_on_bucket(*buckets[0]) : std::nullopt;
      for (std::size_t rank = 0; rank < all_.size() && !agreed; ++rank) {
        CHECK(messages[rank].size() <= most_);
        if (buckets[rank]) {
          listener->receive_bucket(static_cast<int>(rank), *buckets[rank]);
        } else {
          listener->receive(static_cast<int>(rank), messages[rank]);
        }
      }
      decisions.push_back(agreed ? std::move(*agreed) : listener->take());
    }
    for (const auto& other : decisions) CHECK(bytes_of(other) == bytes_of(decisions[0]));
    return decisions[0];
  }

  /// Requests that are held back are announced when nothing else is left.
  std::vector<Decision> rounds_until_silent() {
    std::vector<Decision> result;
    const auto speaks = [](const auto& rank) { return rank->has_announcements(); };
    const auto holds = [](const auto& rank) { return rank->plans().held() != 0; };
    for (;;) {
      if (std::none_of(all_.begin(), all_.end(), speaks)) {
        const auto holder = std::find_if(all_.begin(), all_.end(), holds);
        if (holder == all_.end()) return result;
        (*holder)->release();
      }
      for (Decision& decision : round()) result.push_back(std::move(decision));
    }
  }

  /// Rounds in which all ranks announced the same bucket.
  int planned() const { return planned_; }
  /// Of rank 0's last message.
  std::size_t bytes() const { return bytes_; }

 private:
  std::size_t most_, bytes_ = 0;
  std::vector<UnnamedSubmissions> unnamed_;
  int planned_ = 0;
  std::vector<std::unique_ptr<RoundNegotiation>> all_;
};

}  // namespace runjob::runtime
