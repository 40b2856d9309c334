#include "runtime/engine/round_exchange.hpp"

#include <string_view>

#include "runtime/collectives/rank_order_reduction.hpp"

namespace runjob::runtime {
namespace {

/// The tag of a message that is not one number; a number n has the tag n + kFirstId.
constexpr std::uint32_t kBytes = 0, kFirstId = 1;

std::size_t byte_count(const Signature& signature) {
  if (signature.kind == Kind::kBarrier) return 0;
  return static_cast<std::size_t>(element_count(signature.shape)) * size_of(signature.dtype);
}

}  // namespace

void RoundExchange::give(const InputOf& input_of) {
  is_in_round_ = true;
  if (const auto id = negotiation_.take_sole_id()) {
    const Signature& signature = negotiation_.signature(*id);
    if (!fits_message(signature)) return rounds_.give(kFirstId + *id, {});
    return give(*id, signature, input_of(negotiation_.name(*id)));
  }
  const std::string bytes = negotiation_.take_bytes(rounds_.most_bytes());
  rounds_.give(kBytes, std::as_bytes(std::span(bytes)));
}

void RoundExchange::give(Id id, const Signature& signature, const void* input) {
  rounds_.give(kFirstId + id, {static_cast<const std::byte*>(input), byte_count(signature)});
}

RoundExchange::Outcome RoundExchange::decide() {
  is_in_round_ = false;
  if (const auto id = sole_id_of_all()) {
    negotiation_.agree(*id);
    return {{negotiation_.decision(*id)}, fits_message(negotiation_.signature(*id))};
  }
  for (int rank = 0; rank < size_; ++rank) {
    const std::uint32_t tag = rounds_.tag(rank);
    if (tag != kBytes) {
      negotiation_.receive(rank, tag - kFirstId);
    } else {
      const auto bytes = rounds_.message(rank);
      negotiation_.receive(rank, std::string_view(reinterpret_cast<const char*>(bytes.data()), bytes.size()));
    }
  }
  return {negotiation_.take(), false};
}

/// What every rank has said in this round, when it is one number.
std::optional<RoundExchange::Id> RoundExchange::sole_id_of_all() const {
  const std::uint32_t tag = rounds_.tag(0);
  for (int rank = 1; rank < size_; ++rank) {
    if (rounds_.tag(rank) != tag) return std::nullopt;
  }
  return tag == kBytes ? std::nullopt : std::optional(tag - kFirstId);
}

bool RoundExchange::run_at_once(const Submission& submission, Deadline deadline) {
  if (is_in_round_ || has_something_to_say() || !fits_message(submission.signature)) return false;
  const auto id = negotiation_.find(submission.name, submission.signature);
  if (!id) return false;
  is_in_round_ = true;
  give(*id, submission.signature, submission.input);
  if (!collect(deadline) || sole_id_of_all() != id) return false;
  is_in_round_ = false;
  negotiation_.agree(*id);
  reduce(submission, nullptr);
  return true;
}

/// Whether a round is all that such an operation needs.
bool RoundExchange::fits_message(const Signature& signature) const {
  if (signature.kind != Kind::kAllreduce) return signature.kind == Kind::kBarrier;
  return static_cast<std::size_t>(element_count(signature.shape)) <= rounds_.most_bytes() / size_of(signature.dtype);
}

void RoundExchange::reduce(const Submission& submission, Timeline* timeline) {
  const Signature& signature = submission.signature;
  const auto count = static_cast<std::size_t>(element_count(signature.shape));
  if (signature.kind == Kind::kBarrier || count == 0) return;
  if (timeline != nullptr && rounds_.activity() != nullptr) {
    timeline->begin_activity(submission.name, rounds_.activity());
  }
  inputs_.clear();
  for (int rank = 0; rank < size_; ++rank) inputs_.push_back(rounds_.message(rank).data());
  RankOrderReduction(signature.dtype, signature.op, signature.prescale, signature.postscale, size_)
      .run(submission.output, inputs_, count);
}

}  // namespace runjob::runtime
