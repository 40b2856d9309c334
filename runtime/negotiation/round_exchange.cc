#include "runtime/negotiation/round_exchange.hpp"

#include <algorithm>
#include <span>
#include <string_view>

#include "base/process/float_environment.hpp"
#include "runtime/collectives/copy_bytes.hpp"
#include "runtime/negotiation/combine_messages.hpp"

namespace runjob::runtime {
namespace {

// The tag of a rank's message: kBytes for words, an operation's id + kFirstId, or a bucket's hash with kBucketTag.
// kFollows goes with an id when the operation begins nothing.
constexpr std::uint32_t kBytes = 0, kFirstId = 1, kFollows = StepPlan::kHashMask + 1, kBucketTag = kFollows << 1;

/// A tag without what may differ between ranks that announce the same.
constexpr std::uint32_t bare(std::uint32_t tag) {
  return tag & ~kFollows;
}

bool is_bucket(std::uint32_t tag) {
  return (tag & kBucketTag) != 0;
}

/// Bytes that an input takes in a bucket's message.
std::size_t padded(std::size_t bytes) {
  constexpr std::size_t kAlignment = 8;
  return (bytes + kAlignment - 1) / kAlignment * kAlignment;
}

}  // namespace

void RoundExchange::begin_round(const InputOf& input_of) {
  is_in_round_ = true;
  if (const auto sole = negotiation_.take_sole_id()) {
    RoundNegotiation::OwnNames names(negotiation_);
    const void* input = fits_messages(sole->id) ? input_of(names.of(sole->id)) : nullptr;
    return send(sole->id, input, sole->begins ? 0 : kFollows);
  }
  if (const auto bucket = negotiation_.take_bucket()) return send_bucket(*bucket, input_of);
  const std::string bytes = negotiation_.take_bytes(rounds_.most_bytes());
  rounds_.give(kBytes, std::as_bytes(std::span(bytes)));
}

/// `input`: null when it is not in the message.
void RoundExchange::send(Id id, const void* input, std::uint32_t flags) {
  const OwnMessage own = input != nullptr ? cache_.own_message(id) : OwnMessage();
  message_bytes_ = own.bytes;
  rounds_.give_input(flags | (kFirstId + id), {static_cast<const std::byte*>(input), own.bytes}, own.unread);
}

/// True when a round is all that a bucket needs.
bool RoundExchange::fits_messages(const std::vector<Id>& bucket) const {
  std::size_t bytes = 0;
  return std::all_of(bucket.begin(), bucket.end(), [&](Id id) {
    if (!cache_.is_plain_allreduce(id)) return false;
    bytes += padded(cache_.largest_input(id));
    return bytes <= rounds_.most_data_bytes(Kind::kAllreduce);
  });
}

void RoundExchange::send_bucket(Bucket bucket, const InputOf& input_of) {
  const std::vector<Id>& ids = plans_.ids(bucket);
  packed_.clear();
  RoundNegotiation::OwnNames names(negotiation_);
  if (fits_messages(ids)) {
    for (const Id id : ids) {
      const std::size_t bytes = cache_.largest_input(id), offset = packed_.size();
      packed_.resize(offset + padded(bytes));
      copy_bytes(packed_.data() + offset, input_of(names.of(id)), bytes);
    }
  }
  message_bytes_ = packed_.size();
  rounds_.give_input(kBucketTag | bucket, packed_, {});
}

RoundExchange::Outcome& RoundExchange::decide() {
  is_in_round_ = false;
  const std::optional<Id> id = sole_id_of_all();
  if (id) {
    bool begins = false;
    for (int rank = 0; rank < size_; ++rank) begins = begins || (rounds_.tag(rank) & kFollows) == 0;
    outcome_.decisions.assign(1, cache_.decision(*id));
    outcome_.is_in_messages = fits_messages(*id);
    count(outcome_.is_in_messages);
    negotiation_.agree(*id, begins);
    if (negotiation_.is_unnamed(*id)) outcome_.decisions.front().name = negotiation_.agreed_name(*id);
    return outcome_;
  }
  const std::uint32_t tag = tag_of_all();
  if (is_bucket(tag) && decide_on_bucket(tag & ~kBucketTag)) return outcome_;
  count(false);
  receive_all();
  outcome_ = {negotiation_.take(), false};
  return outcome_;
}

void RoundExchange::receive_all() {
  for (int rank = 0; rank < size_; ++rank) {
    const std::uint32_t tag = rounds_.tag(rank);
    if (is_bucket(tag)) {
      negotiation_.receive_bucket(rank, tag & ~kBucketTag);
    } else if (tag != kBytes) {
      negotiation_.receive(rank, bare(tag) - kFirstId, (tag & kFollows) == 0);
    } else {
      const auto bytes = rounds_.message(rank);
      negotiation_.receive(rank, std::string_view(reinterpret_cast<const char*>(bytes.data()), bytes.size()));
    }
  }
}

/// False when the ranks' messages must be received one by one.
bool RoundExchange::decide_on_bucket(Bucket bucket) {
  const std::vector<Id>& ids = plans_.ids(bucket);
  const bool with_data = fits_messages(ids);
  std::vector<std::size_t> bytes;
  if (with_data) {
    for (const Id id : ids) bytes.push_back(padded(cache_.largest_input(id)));
  }
  auto decisions = negotiation_.agree_on_bucket(bucket);
  if (!decisions) return false;
  count(with_data);
  count_planned_.store(planned_rounds() + 1, std::memory_order_relaxed);
  std::size_t offset = 0;
  for (std::size_t i = 0; i < bytes.size(); offset += bytes[i++]) (*decisions)[i].message_offset = offset;
  outcome_ = {std::move(*decisions), with_data};
  return true;
}

void RoundExchange::count(bool with_data) {
  count_.store(rounds() + 1, std::memory_order_relaxed);
  if (with_data) count_with_data_.store(rounds_with_data() + 1, std::memory_order_relaxed);
}

/// The bare tag of every rank's message in this round; kBytes when they differ.
std::uint32_t RoundExchange::tag_of_all() const {
  const std::uint32_t tag = bare(rounds_.tag(0));
  for (int rank = 1; rank < size_; ++rank) {
    if (bare(rounds_.tag(rank)) != tag) return kBytes;
  }
  return tag;
}

/// The id that every rank has announced alone in this round, if that decides it.
std::optional<RoundExchange::Id> RoundExchange::sole_id_of_all() const {
  const std::uint32_t tag = tag_of_all();
  if (tag == kBytes || is_bucket(tag) || !negotiation_.may_agree(tag - kFirstId)) return std::nullopt;
  return tag - kFirstId;
}

std::optional<RoundExchange::Id> RoundExchange::find_at_once(const SubmissionView& submission) const {
  if (is_in_round_ || negotiation_.has_announcements()) return std::nullopt;
  const auto id = cache_.find(announced_name(submission), submission.signature);
  return id && fits_messages(*id) ? id : std::nullopt;
}

RoundExchange::AtOnce RoundExchange::decide_at_once(const SubmissionView& submission, Deadline deadline) {
  const std::optional<Id> id = find_at_once(submission);
  if (!id) return {};
  plans_.announced_alone(*id);
  is_in_round_ = true;
  send(*id, submission.input, 0);
  if (!collect(deadline) || sole_id_of_all() != id) return {};
  is_in_round_ = false;
  count(true);
  negotiation_.agree(*id, /*begins=*/true);
  return {&cache_.decision(*id), &cache_.prepared(*id)};
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
  if (!DefaultFloatEnvironment::is_set()) [[unlikely]] {
    const DefaultFloatEnvironment same_on_all_ranks;
    return combine(call, decision);
  }
  if (const char* stage = rounds_.activity(call.kind)) call.tell_stage(stage, "round of negotiation");
  // The other ranks read this rank's message: reading it here as well would compete with their processors for it.
  if (call.kind == Kind::kAllreduce) return reduce(call, decision.message_offset);
  std::vector<std::span<const std::byte>>& inputs = inputs_.by_rank;
  inputs.resize(static_cast<std::size_t>(size_));
  for (int rank = 0; rank < size_; ++rank) {
    inputs[static_cast<std::size_t>(rank)] =
        rank == rank_ ? std::span(static_cast<const std::byte*>(call.input), message_bytes_) : rounds_.message(rank);
  }
  combine_messages(rounds_, call, decision, rank_, inputs_);
}

/// As combine_messages(), for the most frequent kind, which need not know how long the messages are.
void RoundExchange::reduce(const Call& call, std::size_t offset) {
  std::vector<const void*>& inputs = inputs_.pointers;
  inputs.resize(static_cast<std::size_t>(size_));
  for (int rank = 0; rank < size_; ++rank)
    inputs[static_cast<std::size_t>(rank)] = rank == rank_ ? call.input : rounds_.message(rank).data() + offset;
  rounds_.reduce(call, inputs, call.count);
}

}  // namespace runjob::runtime
