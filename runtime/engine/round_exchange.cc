#include "runtime/engine/round_exchange.hpp"

#include <algorithm>
#include <cstring>
#include <string_view>

#include "runtime/engine/combine_messages.hpp"

namespace runjob::runtime {
namespace {

/// The tag of a message that is not one number; a number n has the tag n + kFirstId, with a bit for an operation that begins nothing,
/// a bucket its word.
constexpr std::uint32_t kBytes = 0, kFirstId = 1, kFollows = StepPlan::kHashMask + 1;

/// Room of an input in a bucket's message.
std::size_t room(std::size_t bytes) {
  constexpr std::size_t kAlignment = 8;
  return (bytes + kAlignment - 1) / kAlignment * kAlignment;
}

}  // namespace

void RoundExchange::give(const InputOf& input_of) {
  is_in_round_ = true;
  if (const auto sole = negotiation_.take_sole_id()) {
    return give(sole->id, fits_message(sole->id) ? input_of(negotiation_.name(sole->id)) : nullptr,
                sole->begins ? 0 : kFollows);
  }
  if (const auto word = negotiation_.take_bucket()) return give_bucket(*word, input_of);
  const std::string bytes = negotiation_.take_bytes(rounds_.most_bytes());
  rounds_.give(kBytes, std::as_bytes(std::span(bytes)));
}

/// `input`: when it fits a message.
void RoundExchange::give(Id id, const void* input, std::uint32_t follows) {
  const OwnMessage own = input != nullptr ? negotiation_.own_message(id) : OwnMessage();
  message_bytes_ = own.bytes;
  rounds_.give_without(follows | (kFirstId + id), {static_cast<const std::byte*>(input), own.bytes}, own.unread);
}

/// Whether a round is all that a bucket needs.
bool RoundExchange::fits_message(const std::vector<Id>& bucket) const {
  std::size_t bytes = 0;
  return std::all_of(bucket.begin(), bucket.end(), [&](Id id) {
    if (!negotiation_.is_plain_allreduce(id)) return false;
    bytes += room(negotiation_.largest_input(id));
    return bytes <= rounds_.most_data_bytes();
  });
}

void RoundExchange::give_bucket(Word word, const InputOf& input_of) {
  const std::vector<Id>& bucket = negotiation_.bucket(word);
  packed_.clear();
  if (fits_message(bucket)) {
    for (const Id id : bucket) {
      const std::size_t bytes = negotiation_.largest_input(id), place = packed_.size();
      packed_.resize(place + room(bytes));
      if (bytes != 0) std::memcpy(packed_.data() + place, input_of(negotiation_.name(id)), bytes);
    }
  }
  message_bytes_ = packed_.size();
  rounds_.give(word, packed_);
}

RoundExchange::Outcome RoundExchange::decide() {
  is_in_round_ = false;
  if (const auto id = sole_id_of_all()) {
    bool begins = false;
    for (int rank = 0; rank < size_; ++rank) begins = begins || (rounds_.tag(rank) & kFollows) == 0;
    Outcome outcome{{negotiation_.decision(*id)}, fits_message(*id)};
    count(outcome.is_in_messages);
    negotiation_.agree(*id, begins);
    return outcome;
  }
  if (const Word word = tag_of_all(); RoundNegotiation::is_bucket(word)) {
    if (auto outcome = decide_on_bucket(word)) return std::move(*outcome);
  }
  count(false);
  for (int rank = 0; rank < size_; ++rank) {
    const std::uint32_t tag = rounds_.tag(rank);
    if (RoundNegotiation::is_bucket(tag)) {
      negotiation_.receive_bucket(rank, tag);
    } else if (tag != kBytes) {
      negotiation_.receive(rank, (tag & ~kFollows) - kFirstId, (tag & kFollows) == 0);
    } else {
      const auto bytes = rounds_.message(rank);
      negotiation_.receive(rank, std::string_view(reinterpret_cast<const char*>(bytes.data()), bytes.size()));
    }
  }
  return {negotiation_.take(), false};
}

/// Nullopt: what each rank has said must be received.
std::optional<RoundExchange::Outcome> RoundExchange::decide_on_bucket(Word word) {
  const bool with_data = fits_message(negotiation_.bucket(word));
  std::vector<std::size_t> bytes;
  if (with_data) {
    for (const Id id : negotiation_.bucket(word)) bytes.push_back(room(negotiation_.largest_input(id)));
  }
  auto decisions = negotiation_.agree_on_bucket(word);
  if (!decisions) return std::nullopt;
  count(with_data);
  count_planned_.store(planned_rounds() + 1, std::memory_order_relaxed);
  std::size_t place = 0;
  for (std::size_t i = 0; i < bytes.size(); place += bytes[i++]) (*decisions)[i].message_offset = place;
  return Outcome{std::move(*decisions), with_data};
}

void RoundExchange::count(bool with_data) {
  count_.store(rounds() + 1, std::memory_order_relaxed);
  if (with_data) count_with_data_.store(rounds_with_data() + 1, std::memory_order_relaxed);
}

/// What every rank has said in this round, when it is one word but for kFollows; else kBytes.
RoundExchange::Word RoundExchange::tag_of_all() const {
  const std::uint32_t tag = rounds_.tag(0);
  for (int rank = 1; rank < size_; ++rank) {
    if (((rounds_.tag(rank) ^ tag) & ~kFollows) != 0) return kBytes;
  }
  return tag & ~kFollows;
}

/// When that is an operation's number.
std::optional<RoundExchange::Id> RoundExchange::sole_id_of_all() const {
  const Word tag = tag_of_all();
  return tag == kBytes || RoundNegotiation::is_bucket(tag) ? std::nullopt : std::optional(tag - kFirstId);
}

RoundExchange::AtOnce RoundExchange::decide_at_once(const SubmissionView& submission, Deadline deadline) {
  if (is_in_round_ || has_something_to_say()) return {};
  const auto id = negotiation_.find(submission.name, submission.signature);
  if (!id || !fits_message(*id)) return {};
  negotiation_.said_alone(*id);
  is_in_round_ = true;
  give(*id, submission.input, 0);
  if (!collect(deadline) || sole_id_of_all() != id) return {};
  is_in_round_ = false;
  count(true);
  negotiation_.agree(*id, /*begins=*/true);
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
  // What this rank has given goes to the others' processors: reading it here as well would be in their way.
  if (call.kind == Kind::kAllreduce) return reduce(call, decision.message_offset);
  std::vector<std::span<const std::byte>>& inputs = inputs_.by_rank;
  inputs.resize(static_cast<std::size_t>(size_));
  for (int rank = 0; rank < size_; ++rank)
    inputs[static_cast<std::size_t>(rank)] = rounds_.message(rank).subspan(decision.message_offset);
  std::span<const std::byte>& own = inputs[static_cast<std::size_t>(rank_)];
  own = {static_cast<const std::byte*>(call.input), own.size()};
  combine_messages(rounds_, call, decision, rank_, inputs_);
}

/// What combine_messages() does for the most frequent kind, which need not know how long the messages are.
void RoundExchange::reduce(const Call& call, std::size_t offset) {
  std::vector<const void*>& inputs = inputs_.pointers;
  inputs.resize(static_cast<std::size_t>(size_));
  for (int rank = 0; rank < size_; ++rank)
    inputs[static_cast<std::size_t>(rank)] = rank == rank_ ? call.input : rounds_.message(rank).data() + offset;
  rounds_.reduce(call, inputs, call.count);
}

}  // namespace runjob::runtime
