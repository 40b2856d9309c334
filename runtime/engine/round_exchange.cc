#include "runtime/engine/round_exchange.hpp"

#include <string_view>

#include "runtime/engine/combine_messages.hpp"

namespace runjob::runtime {
namespace {

/// The tag of a message that is not one number; a number n has the tag n + kFirstId.
constexpr std::uint32_t kBytes = 0, kFirstId = 1;

}  // namespace

void RoundExchange::give(const InputOf& input_of) {
  is_in_round_ = true;
  if (const auto id = negotiation_.take_sole_id()) {
    return give(*id, fits_message(*id) ? input_of(negotiation_.name(*id)) : nullptr);
  }
  const std::string bytes = negotiation_.take_bytes(rounds_.most_bytes());
  rounds_.give(kBytes, std::as_bytes(std::span(bytes)));
}

/// `input`: when it fits a message.
void RoundExchange::give(Id id, const void* input) {
  const OwnMessage own = input != nullptr ? negotiation_.own_message(id) : OwnMessage();
  rounds_.give_without(kFirstId + id, {static_cast<const std::byte*>(input), own.bytes}, own.unread);
}

RoundExchange::Outcome RoundExchange::decide() {
  is_in_round_ = false;
  if (const auto id = sole_id_of_all()) {
    negotiation_.agree(*id);
    count(fits_message(*id));
    return {{negotiation_.decision(*id)}, fits_message(*id)};
  }
  count(false);
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

void RoundExchange::count(bool with_data) {
  count_.store(rounds() + 1, std::memory_order_relaxed);
  if (with_data) count_with_data_.store(rounds_with_data() + 1, std::memory_order_relaxed);
}

/// What every rank has said in this round, when it is one number.
std::optional<RoundExchange::Id> RoundExchange::sole_id_of_all() const {
  const std::uint32_t tag = rounds_.tag(0);
  for (int rank = 1; rank < size_; ++rank) {
    if (rounds_.tag(rank) != tag) return std::nullopt;
  }
  return tag == kBytes ? std::nullopt : std::optional(tag - kFirstId);
}

RoundExchange::AtOnce RoundExchange::decide_at_once(const SubmissionView& submission, Deadline deadline) {
  if (is_in_round_ || has_something_to_say()) return {};
  const auto id = negotiation_.find(submission.name, submission.signature);
  if (!id || !fits_message(*id)) return {};
  is_in_round_ = true;
  give(*id, submission.input);
  if (!collect(deadline) || sole_id_of_all() != id) return {};
  is_in_round_ = false;
  count(true);
  negotiation_.agree(*id);
  return {&negotiation_.decision(*id), &negotiation_.prepared(*id)};
}

std::vector<int> RoundExchange::missing(const std::string& name) const {
  std::vector<int> result;
  for (int rank = 0; is_in_round_ && rank < size_; ++rank) {
    if (!rounds_.has_given(rank)) result.push_back(rank);
  }
  if (result.empty()) result = negotiation_.missing(name);
  int first = 0;
  for (const int rank : result) first += rank == first ? 1 : 0;
  return first == rank_ ? result : std::vector<int>();
}

void RoundExchange::combine(const Call& call, const Decision& decision) {
  if (const char* stage = rounds_.activity(call.kind)) call.tell_stage(stage, "round of negotiation");
  std::vector<std::span<const std::byte>>& inputs = inputs_.by_rank;
  inputs.resize(static_cast<std::size_t>(size_));
  for (int rank = 0; rank < size_; ++rank) inputs[static_cast<std::size_t>(rank)] = rounds_.message(rank);
  std::span<const std::byte>& own = inputs[static_cast<std::size_t>(rank_)];
  if (call.kind != Kind::kAllreduce && call.kind != Kind::kBroadcast)  // whose output may be the input
    own = {static_cast<const std::byte*>(call.input), own.size()};
  combine_messages(rounds_, call, decision, rank_, inputs_);
  rounds_.expect_next(own.size());
}

}  // namespace runjob::runtime
