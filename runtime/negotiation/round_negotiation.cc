#include "runtime/negotiation/round_negotiation.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/error.hpp"

namespace runjob::runtime {
namespace {

// The announcements of a rank are a sequence of words: one with the highest bit set, or the length of the request that
// follows. The highest bit marks an operation's id, with a bit for an operation that begins something, or a bucket's
// hash.
using Word = std::uint32_t;
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
  throw Error(Errc::kProtocol, "a rank's announcements in a round of the negotiation are malformed");
}

}  // namespace

RoundNegotiation::RoundNegotiation(int rank, Members members, const Settings& settings, NegotiationObserver* observer)
    : rank_(rank),
      size_(members.size()),
      observer_(observer),
      cache_(rank, size_, settings.capacity),
      plans_(settings.plans),
      unnamed_(rank, size_),
      negotiation_(std::move(members),
                   [this](const std::string& name, const std::vector<Signature>& signatures) {
                     agreements_.push_back({name, name, signatures});
                   }),
      inboxes_(size_),
      last_(size_) {}

void RoundNegotiation::submit(std::list<Request> requests) {
  while (!requests.empty()) {
    if (plans_.has_plan()) {
      const auto id = cache_.find(requests.front().name, requests.front().signature);
      if (id && plans_.hold(*id, requests)) continue;
      if (runtime::is_unnamed(requests.front().name) && plans_.holds_unnamed()) release();
    }
    waiting_.splice(waiting_.end(), requests, requests.begin());
  }
}

void RoundNegotiation::release() {
  waiting_.splice(waiting_.end(), plans_.release());
}

std::optional<RoundNegotiation::Sole> RoundNegotiation::take_sole_id() {
  if (waiting_.size() != 1 || !fragment_.empty() || plans_.has_full()) return std::nullopt;
  const auto id = cache_.find(waiting_.front().name, waiting_.front().signature);
  if (!id) return std::nullopt;
  const Sole sole{*id, waiting_.front().begins};
  waiting_.clear();
  return sole;
}

std::optional<RoundNegotiation::Bucket> RoundNegotiation::take_bucket() {
  if (!waiting_.empty() || !fragment_.empty() || !plans_.has_full()) return std::nullopt;
  return plans_.take_full();
}

std::string RoundNegotiation::take_bytes(std::size_t most) {
  std::string bytes = fragment_.substr(0, most);
  fragment_.erase(0, bytes.size());
  while (!waiting_.empty() && bytes.size() + sizeof(Word) <= most) {
    const Request request = std::move(waiting_.front());
    waiting_.pop_front();
    if (const auto id = cache_.find(request.name, request.signature)) {
      append(bytes, *id | kIsNumber | (request.begins ? kBegins : 0));
      continue;
    }
    const std::string encoded = encode(request);
    append(bytes, static_cast<Word>(encoded.size()));
    const std::size_t fits = std::min(encoded.size(), most - bytes.size());
    bytes.append(encoded, 0, fits);
    fragment_ = encoded.substr(fits);
  }
  while (fragment_.empty() && plans_.has_full() && bytes.size() + sizeof(Word) <= most)
    append(bytes, kIsNumber | kIsBucket | plans_.take_full());
  return bytes;
}

const std::string& RoundNegotiation::OwnNames::of(Id id) {
  if (!negotiation_.is_unnamed(id)) return negotiation_.cache_.name(id);
  const int process_set = negotiation_.cache_.signature_of(id, 0).process_set;
  return name_ = negotiation_.unnamed_.next(process_set, unnamed_[process_set]++);
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
        receive_bucket(rank, word & StepPlan::kHashMask);
      } else {
        receive(rank, word & (kBegins - 1), (word & kBegins) != 0);
      }
      bytes.remove_prefix(sizeof word);
    } else if (word <= bytes.size() - sizeof word) {
      receive_request(rank, decode_request(bytes.substr(sizeof word, word)));
      bytes.remove_prefix(sizeof word + word);
    } else {
      inbox = bytes;
      return;
    }
  }
}

void RoundNegotiation::receive_request(int rank, Request request) {
  if (negotiation_.has_ended(request.signature.process_set)) return;
  if (const auto id = cache_.find(request.name); id && !is_stale(*id)) make_stale(*id);
  if (runtime::is_unnamed(request.name)) {
    UnnamedOrder::Place& place = unnamed_.next_place(request.signature.process_set, rank, request.name);
    if (place.id) negotiate(place);
    unnamed_.announce(place, rank, std::nullopt);
    request.name = place.name;
  }
  note(rank, request.name);
  if (observer_ != nullptr) observer_->rank_ready(request.name, request.signature.kind, rank);
  if (request.signature.kind == Kind::kJoin) {  // operations that wait for this rank must be decided without it
    for (UnnamedOrder::Place* const place : unnamed_.with_id(std::nullopt)) negotiate(*place);
    for (const Id id : cache_.announced()) make_stale(id);
    plans_.end_plan();
  }
  negotiate(rank, request);
}

/// Submits a request to the negotiation, and notes what that decides.
void RoundNegotiation::negotiate(int rank, const Request& request) {
  negotiation_.submit(rank, request);
  std::vector<Decision> decisions = negotiation_.take();
  for (std::size_t left = decisions.size(); left > 0; --left) {  // a join decides several, in any order
    for (Decision& decision : decisions) note_place(decision);
  }
  for (Decision& decision : decisions) negotiated_.push_back(std::move(decision));
}

/// If the decision is that of the first open place of a process set, the place is decided.
void RoundNegotiation::note_place(Decision& decision) {
  const UnnamedOrder::Place* const place = unnamed_.first(decision.name);
  if (place == nullptr) return;
  const std::string key = place->key, name = unnamed_.decided(place->process_set);
  for (Agreement& agreement : agreements_) {
    if (agreement.name == decision.name) agreement = {name, key, std::move(agreement.signatures)};
  }
  decision.name = name;
}

/// The id of a place does not say what another rank means: the signatures of the ranks are compared.
void RoundNegotiation::negotiate(UnnamedOrder::Place& place) {
  const Id id = *place.id;
  unnamed_.drop_id(place);
  cache_.count_open(id, -1);
  for (int rank = 0; rank < static_cast<int>(size_); ++rank) {
    if (place.ready[static_cast<std::size_t>(rank)]) negotiate(rank, {place.name, cache_.signature_of(id, rank)});
  }
}

void RoundNegotiation::receive_bucket(int rank, Bucket bucket) {
  bool begins = true;
  for (const Id id : plans_.ids(bucket)) receive(rank, id, std::exchange(begins, false));
}

void RoundNegotiation::receive(int rank, Id id, bool begins) {
  if (!cache_.contains(id)) refuse();
  if (is_unnamed(id)) return receive_unnamed(rank, id, begins);
  const std::string& name = cache_.name(id);
  note(rank, name);
  if (is_stale(id) || negotiation_.has_joined()) return negotiate(rank, {name, cache_.signature_of(id, rank)});
  if (observer_ != nullptr) observer_->rank_ready(name, cache_.signature_of(id, rank).kind, rank);
  const std::optional<bool> any_begins = cache_.announce(id, rank, begins);
  if (!any_begins) return;
  cache_.touch(id);
  decisions_.push_back(cache_.decision(id));
  plans_.agreed(id, cache_.reduced_bytes(id), *any_begins);
}

void RoundNegotiation::receive_unnamed(int rank, Id id, bool begins) {
  const Signature& signature = cache_.signature_of(id, rank);
  UnnamedOrder::Place& place = unnamed_.next_place(signature.process_set, rank, cache_.name(id));
  note(rank, place.name);
  if (observer_ != nullptr) observer_->rank_ready(place.name, signature.kind, rank);
  const bool is_alike =
      !is_stale(id) && !negotiation_.has_joined() && (place.ready_count == 0 || place.id == std::optional(id));
  if (!is_alike && place.id) negotiate(place);
  unnamed_.announce(place, rank, is_alike ? std::optional(id) : std::nullopt);
  if (!is_alike) return negotiate(rank, {place.name, signature});
  if (place.ready_count == 1) cache_.count_open(id, 1);
  place.begins = place.begins || begins;
  if (place.ready_count < size_) return;
  plans_.agreed(id, cache_.reduced_bytes(id), place.begins);
  cache_.count_open(id, -1);
  cache_.touch(id);
  decisions_.push_back(cache_.decision(id));
  decisions_.back().name = unnamed_.decided(signature.process_set);
}

std::vector<Decision> RoundNegotiation::take() {
  std::vector<Decision> decisions = std::exchange(decisions_, {});
  decisions_.reserve(decisions.size());  // the next round often has as many
  for (const Id id : std::exchange(stale_, {})) {
    plans_.forgotten(id);
    cache_.forget(id);
  }
  auto agreement = agreements_.begin();
  for (Decision& decision : std::exchange(negotiated_, {})) {
    plans_.interrupted();
    if (agreement != agreements_.end() && agreement->name == decision.name) {
      const std::string name = std::exchange(decision.name, agreement->key);
      const auto forgotten = cache_.remember(decision, std::move(agreement++->signatures));
      if (forgotten) plans_.forgotten(*forgotten);
      decision.name = name;
    }
    decisions.push_back(std::move(decision));
  }
  agreements_.clear();
  if (observer_ != nullptr && observer_->is_listening()) observer_->round_ended();
  end_round();
  return decisions;
}

std::optional<std::vector<Decision>> RoundNegotiation::agree_on_bucket(Bucket bucket) {
  const std::vector<Id>& ids = plans_.ids(bucket);
  const bool is_new =
      std::none_of(ids.begin(), ids.end(), [&](Id id) { return cache_.is_announced(id) || !may_agree(id); });
  if (!is_new || negotiation_.has_joined()) return std::nullopt;
  plans_.agreed_on_bucket(bucket);
  std::vector<Decision> decisions;
  decisions.reserve(ids.size());
  for (const Id id : ids) {
    note_agreed(id);
    plans_.agreed(id, cache_.reduced_bytes(id), /*begins=*/decisions.empty());
    decisions.push_back(cache_.decision(id));
    if (is_unnamed(id)) decisions.back().name = agreed_name(id);
  }
  end_round();
  return decisions;
}

void RoundNegotiation::observe_all_ready(Id id) {
  for (int rank = 0; rank < static_cast<int>(size_); ++rank)
    observer_->rank_ready(agreed_name(id), cache_.signature_of(id, rank).kind, rank);
}

/// A change of the plan moves requests: each goes where the new plan wants it.
void RoundNegotiation::end_round() {
  auto released = plans_.end_round(is_busy(rank_), [this](Id id) { return cache_.hash_of(id); });
  if (!released) return;
  std::list<Request> again = std::exchange(waiting_, {});
  again.splice(again.end(), *released);
  submit(std::move(again));
}

/// To be called before an id is forgotten.
void RoundNegotiation::write_last() {
  if (last_agreed_) last_.assign(size_, agreed_name(*std::exchange(last_agreed_, {})));
}

void RoundNegotiation::end_set(int process_set) {
  write_last();
  for (UnnamedOrder::Place* const place : unnamed_.with_id(std::nullopt)) {
    if (place->process_set == process_set) cache_.count_open(*place->id, -1);
  }
  unnamed_.end_set(process_set);
  const std::vector<Id> ids = cache_.ids_of(process_set);
  for (const Id id : ids) {
    cache_.withdraw(id);
    plans_.forgotten(id);
    cache_.forget(id);
  }
  negotiation_.end_set(process_set);
  if (!ids.empty()) end_round();  // a plan with these operations ends before the next round
}

void RoundNegotiation::note(int rank, const std::string& name) {
  write_last();
  last_[static_cast<std::size_t>(rank)] = name;
}

std::vector<std::string> RoundNegotiation::last() const {
  return last_agreed_ ? std::vector<std::string>(size_, agreed_name(*last_agreed_)) : last_;
}

std::vector<int> RoundNegotiation::missing(const std::string& name) const {
  if (runtime::is_unnamed(name)) return missing_unnamed(name);
  const auto id = cache_.find(name);
  return id && cache_.is_announced(*id) ? cache_.missing(*id) : negotiation_.missing(name);
}

std::vector<int> RoundNegotiation::missing_unnamed(const std::string& name) const {
  const UnnamedOrder::Place* const place = unnamed_.find(name);
  if (place == nullptr) return {};
  if (!place->id) return negotiation_.missing(place->name);
  std::vector<int> ranks;
  for (std::size_t rank = 0; rank < size_; ++rank) {
    if (!place->ready[rank]) ranks.push_back(static_cast<int>(rank));
  }
  return ranks;
}

bool RoundNegotiation::is_stale(Id id) const {
  return std::find(stale_.begin(), stale_.end(), id) != stale_.end();
}

/// Not all ranks mean the same by the id any more: the ranks that announced it mean the operation as the cache has it.
void RoundNegotiation::make_stale(Id id) {
  stale_.push_back(id);
  for (const int rank : cache_.withdraw(id)) negotiate(rank, {cache_.name(id), cache_.signature_of(id, rank)});
  for (UnnamedOrder::Place* const place : unnamed_.with_id(id)) negotiate(*place);
}

}  // namespace runjob::runtime
