#include "runtime/engine/round_negotiation.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/error.hpp"

namespace runjob::runtime {
namespace {

// What a rank says is a sequence of words: a number with the highest bit set, or the length of the request that follows.
// A number is an operation's, with a bit that says whether it begins something, or the hash of a bucket.
using Word = RoundNegotiation::Word;
constexpr Word kIsNumber = Word{1} << 31, kIsBucket = Word{1} << 30, kBegins = Word{1} << 29;
static_assert(StepPlan::kHashMask == kBegins - 1);

void append(std::string& bytes, Word word) {
  char raw[sizeof word];
  std::memcpy(raw, &word, sizeof word);
  bytes.append(raw, sizeof word);
}

Word read_word(std::string_view bytes) {
  Word word;
  std::memcpy(&word, bytes.data(), sizeof word);
  return word;
}

[[noreturn]] void refuse() {
  throw Error(Errc::kProtocol, "what a rank said in a round of the negotiation is malformed");
}

RankMessage submission(Request request) {
  RankMessage message;
  message.requests.push_back(std::move(request));
  return message;
}

/// One of `places`, for a name.
std::size_t place_of(std::string_view name, std::size_t places) {
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

RoundNegotiation::RoundNegotiation(int rank, Members members, const Settings& settings, NegotiationObserver* observer)
    : rank_(rank),
      size_(members.size()),
      settings_(settings),
      observer_(observer),
      negotiation_(std::move(members),
                   [this](const std::string& name, const std::vector<Signature>& signatures) {
                     agreements_.push_back({name, signatures});
                   }),
      outstanding_(size_),
      last_(size_),
      inboxes_(size_) {}

std::optional<RoundNegotiation::Id> RoundNegotiation::find_name(std::string_view name) const {
  Id& likely = looked_up_[place_of(name, looked_up_.size())];
  if (likely < slots_.size() && !name.empty() && slots_[likely].decision.name == name) return likely;
  const auto found = ids_.find(name);
  if (found == ids_.end()) return std::nullopt;
  return likely = found->second;
}

std::optional<RoundNegotiation::Id> RoundNegotiation::find(std::string_view name, const Signature& signature) const {
  const auto id = find_name(name);
  return id && slots_[*id].signature_of(rank_) == signature ? id : std::nullopt;
}

std::optional<RoundNegotiation::Id> RoundNegotiation::find(std::string_view name,
                                                           const SignatureView& signature) const {
  const auto id = find_name(name);
  return id && describes(signature, slots_[*id].signature_of(rank_)) ? id : std::nullopt;
}

void RoundNegotiation::submit(std::vector<Request> requests) {
  for (Request& request : requests) {
    if (!plan_.buckets().empty()) {
      const auto id = find(request.name, request.signature);
      if (id && held_.hold(*id, request)) continue;
    }
    waiting_.push_back(std::move(request));
  }
}

void RoundNegotiation::release() {
  for (Request& request : held_.release()) waiting_.push_back(std::move(request));
}

std::optional<RoundNegotiation::Sole> RoundNegotiation::take_sole_id() {
  if (waiting_.size() != 1 || !fragment_.empty() || held_.has_full()) return std::nullopt;
  const auto id = find(waiting_.front().name, waiting_.front().signature);
  if (!id) return std::nullopt;
  const Sole sole{*id, waiting_.front().begins};
  waiting_.pop_front();
  return sole;
}

std::optional<Word> RoundNegotiation::take_bucket() {
  if (!waiting_.empty() || !fragment_.empty() || !held_.has_full()) return std::nullopt;
  return kIsNumber | kIsBucket | plan_.buckets()[held_.take_full()].hash;
}

std::string RoundNegotiation::take_bytes(std::size_t most) {
  std::string bytes = fragment_.substr(0, most);
  fragment_.erase(0, bytes.size());
  while (!waiting_.empty() && bytes.size() + sizeof(Word) <= most) {
    const Request request = std::move(waiting_.front());
    waiting_.pop_front();
    if (const auto id = find(request.name, request.signature)) {
      append(bytes, *id | kIsNumber | (request.begins ? kBegins : 0));
      continue;
    }
    const std::string encoded = encode(submission(request));
    append(bytes, static_cast<Word>(encoded.size()));
    const std::size_t fits = std::min(encoded.size(), most - bytes.size());
    bytes.append(encoded, 0, fits);
    fragment_ = encoded.substr(fits);
  }
  while (fragment_.empty() && held_.has_full() && bytes.size() + sizeof(Word) <= most)
    append(bytes, kIsNumber | kIsBucket | plan_.buckets()[held_.take_full()].hash);
  return bytes;
}

void RoundNegotiation::receive(int rank, std::string_view bytes) {
  std::string& inbox = inboxes_[static_cast<std::size_t>(rank)];
  std::string joined;
  if (!inbox.empty()) {
    joined = std::exchange(inbox, {}).append(bytes);
    bytes = joined;
  }
  while (!bytes.empty()) {
    if (bytes.size() < sizeof(Word)) refuse();
    const Word word = read_word(bytes);
    if ((word & kIsNumber) != 0) {
      if ((word & kIsBucket) != 0) {
        receive_bucket(rank, word);
      } else {
        receive(rank, word & (kBegins - 1), (word & kBegins) != 0);
      }
      bytes.remove_prefix(sizeof word);
    } else if (word <= bytes.size() - sizeof word) {
      receive_request(rank, bytes.substr(sizeof word, word));
      bytes.remove_prefix(sizeof word + word);
    } else {
      inbox = bytes;
      return;
    }
  }
}

void RoundNegotiation::receive_request(int rank, std::string_view bytes) {
  RankMessage message = decode_rank_message(bytes);
  for (Request& request : message.requests) receive(rank, std::move(request));
}

void RoundNegotiation::receive(int rank, Request request) {
  note(rank, request.name);
  if (observer_ != nullptr) observer_->rank_ready(request.name, request.signature.kind, rank);
  if (request.signature.kind == Kind::kJoin) {
    expand_all();
    plan_ends_ = true;
  }
  if (const auto id = find_name(request.name); id && !slots_[*id].is_stale) make_stale(*id);
  negotiation_.receive(rank, submission(std::move(request)));
}

bool RoundNegotiation::is_bucket(Word word) {
  return (word & kIsBucket) != 0;
}

std::size_t RoundNegotiation::find_bucket(Word word) const {
  const auto bucket = plan_.find(word & StepPlan::kHashMask);
  if (!bucket) throw Error(Errc::kProtocol, "a rank follows a plan that is not this one's");
  return *bucket;
}

void RoundNegotiation::receive_bucket(int rank, Word word) {
  bool begins = true;
  for (const Id id : bucket(word)) receive(rank, id, std::exchange(begins, false));
}

void RoundNegotiation::receive(int rank, Id id, bool begins) {
  if (id >= slots_.size() || slots_[id].decision.name.empty()) refuse();
  Slot& slot = slots_[id];
  note(rank, slot.decision.name);
  if (slot.is_stale || negotiation_.has_joined())
    return negotiation_.receive(rank, submission({slot.decision.name, slot.signature_of(rank)}));
  if (observer_ != nullptr) observer_->rank_ready(slot.decision.name, slot.signature_of(rank).kind, rank);
  const auto index = static_cast<std::size_t>(rank);
  if (slot.ready[index]) refuse();
  slot.ready[index] = true;
  slot.begins = slot.begins || begins;
  ++outstanding_[index];
  if (static_cast<std::size_t>(++slot.ready_count) < size_) return;
  make_unready(slot);
  touch(slot);
  decisions_.push_back(slot.decision);
  step(id, std::exchange(slot.begins, false));
}

void RoundNegotiation::make_unready(Slot& slot) {
  for (std::size_t rank = 0; rank < size_; ++rank) outstanding_[rank] -= slot.ready[rank] ? 1 : 0;
  slot.ready.assign(size_, false);
  slot.ready_count = 0;
}

std::optional<std::vector<Decision>> RoundNegotiation::agree_on_bucket(Word word) {
  const std::vector<Id>& ids = bucket(word);
  const bool is_new = std::all_of(ids.begin(), ids.end(), [&](Id id) { return slots_[id].ready_count == 0; });
  if (!is_new || negotiation_.has_joined()) return std::nullopt;
  plan_.agreed(find_bucket(word));
  std::vector<Decision> decisions;
  decisions.reserve(ids.size());
  for (const Id id : ids) {
    agreed(id);
    step(id, /*begins=*/decisions.empty());
    decisions.push_back(slots_[id].decision);
  }
  end_round();
  return decisions;
}

/// All ranks have said it at once.
void RoundNegotiation::tell_ready(Id id) {
  const Slot& slot = slots_[id];
  for (std::size_t rank = 0; rank < size_; ++rank) {
    observer_->rank_ready(slot.decision.name, slot.signature_of(static_cast<int>(rank)).kind, static_cast<int>(rank));
  }
}

/// What is decided next.
void RoundNegotiation::step(Id id, bool begins) {
  if (settings_.bucket_bytes == 0) return;
  const RepeatingCycle::Event event = cycle_.agreed({id, slots_[id].bytes, begins});
  if (event != RepeatingCycle::Event::kNone) ended_ = event;
}

void RoundNegotiation::forget_steps() {
  cycle_.interrupted();
  ended_.reset();
  repeats_ = 0;
}

/// The plan changes only here: within a round, all say what they mean by the one before.
void RoundNegotiation::end_round() {
  if (std::exchange(plan_ends_, false)) {
    forget_steps();
    return follow({});
  }
  if (!ended_) return;
  const bool has_repeated = std::exchange(ended_, {}) == RepeatingCycle::Event::kRepeated;
  if (plan_.end_cycle()) follow(std::move(plan_));
  held_.end_cycle(!is_busy(rank_));
  const bool may_improve = has_repeated && (plan_.has_given_up() || !plan_.is_of(cycle_.steps()));
  repeats_ = may_improve ? repeats_ + 1 : 0;
  if (!may_improve || repeats_ < enough_repeats_) return;
  constexpr int kMost = 256;
  enough_repeats_ = plan_.has_paid() ? 1 : std::min(2 * enough_repeats_, kMost);
  follow(StepPlan(cycle_.steps(), settings_.bucket_bytes, [this](Id each) { return hash_of(each); }));
}

/// From now on. What is held back goes where the plan wants it.
void RoundNegotiation::follow(StepPlan plan) {
  release();
  plan_ = std::move(plan);
  held_.follow(plan_, is_busy(rank_));
  std::deque<Request> all = std::exchange(waiting_, {});
  submit({std::make_move_iterator(all.begin()), std::make_move_iterator(all.end())});
}

/// Of the decision and what the ranks have alike.
std::uint64_t RoundNegotiation::hash_of(Id id) const {
  const Slot& slot = slots_[id];
  Signature common = slot.signature_of(0);
  if (has_own_first_extent(common.kind)) common = {.kind = common.kind, .dtype = common.dtype};
  return std::hash<std::string>()(encode({slot.decision}) + encode(submission({slot.decision.name, common})));
}

/// Before any number is forgotten in a round.
void RoundNegotiation::note(int rank, const std::string& name) {
  if (last_agreed_) last_.assign(size_, slots_[*std::exchange(last_agreed_, {})].decision.name);
  last_[static_cast<std::size_t>(rank)] = name;
}

std::vector<std::string> RoundNegotiation::last() const {
  return last_agreed_ ? std::vector<std::string>(size_, slots_[*last_agreed_].decision.name) : last_;
}

std::vector<int> RoundNegotiation::missing(const std::string& name) const {
  const auto id = find_name(name);
  if (!id || slots_[*id].ready_count == 0) return negotiation_.missing(name);
  std::vector<int> result;
  for (std::size_t rank = 0; rank < size_; ++rank) {
    if (!slots_[*id].ready[rank]) result.push_back(static_cast<int>(rank));
  }
  return result;
}

/// Not all ranks mean what the number says any more: those that have sent it are taken at their word.
void RoundNegotiation::make_stale(Id id) {
  Slot& slot = slots_[id];
  slot.is_stale = true;
  stale_.push_back(id);
  for (std::size_t rank = 0; rank < size_; ++rank) {
    const int number = static_cast<int>(rank);
    if (slot.ready[rank]) negotiation_.receive(number, submission({slot.decision.name, slot.signature_of(number)}));
  }
  make_unready(slot);
}

/// A rank has joined: what waits for it must be looked at as a whole.
void RoundNegotiation::expand_all() {
  for (const Id id : ages_) {
    if (slots_[id].ready_count > 0 && !slots_[id].is_stale) make_stale(id);
  }
}

std::vector<Decision> RoundNegotiation::take() {
  std::vector<Decision> decisions = std::exchange(decisions_, {});
  decisions_.reserve(decisions.size());  // the next round's are often as many
  for (const Id id : std::exchange(stale_, {})) forget(id);
  auto agreement = agreements_.begin();
  for (Decision& decision : negotiation_.take()) {
    forget_steps();
    if (agreement != agreements_.end() && agreement->name == decision.name) {
      remember(std::move(*agreement++), decision);
    }
    decisions.push_back(std::move(decision));
  }
  agreements_.clear();
  end_round();
  return decisions;
}

void RoundNegotiation::remember(Agreement agreement, const Decision& decision) {
  if (find_name(agreement.name)) return;
  if (ages_.size() >= settings_.capacity) make_room();
  if (ages_.size() >= settings_.capacity || agreement.name.empty()) return;
  if (free_.empty()) {
    free_.push_back(static_cast<Id>(slots_.size()));
    slots_.emplace_back();
  }
  const Id id = free_.back();
  free_.pop_back();
  Slot& slot = slots_[id];
  slot.decision = decision;
  slot.signatures = std::move(agreement.signatures);
  if (all_equal(slot.signatures)) slot.signatures.resize(1);
  const Signature& own = slot.signature_of(rank_);
  const int size = static_cast<int>(size_);
  slot.largest_input = runtime::largest_input(own, decision);
  slot.own = own_message_of(own, rank_, size);
  slot.bytes = own.kind == Kind::kAllreduce ? input_bytes(own, std::nullopt) : 0;
  if (own.group.empty()) slot.prepared = prepare_operation(own, decision, rank_, size);
  slot.ready.assign(size_, false);
  slot.age = ages_.insert(ages_.begin(), id);
  ids_.emplace(slot.decision.name, id);
}

/// Forgets what was run least recently and waits for nobody.
void RoundNegotiation::make_room() {
  const auto oldest = std::find_if(ages_.rbegin(), ages_.rend(), [&](Id id) { return slots_[id].ready_count == 0; });
  if (oldest != ages_.rend()) forget(*oldest);
}

void RoundNegotiation::forget(Id id) {
  Slot& slot = slots_[id];
  plan_ends_ = plan_ends_ || plan_.contains(id);
  forget_steps();
  ids_.erase(slot.decision.name);
  ages_.erase(slot.age);
  slot = {};
  free_.push_back(id);
}

}  // namespace runjob::runtime
