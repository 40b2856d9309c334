#include "runtime/job/process_sets.hpp"

#include <algorithm>
#include <cstring>
#include <exception>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/error.hpp"
#include "base/log.hpp"
#include "base/parse.hpp"
#include "runtime/life/goodbye.hpp"

namespace runjob::runtime {
namespace {

/// The name of the exchanges among all ranks of which a change consists. A rank has one of them at a time, and all
/// ranks have them in the same order.
constexpr char kExchangeName[] = "<process sets>";

constexpr int kMostMembersId = 1 << 30;

Error unknown_set(int id) {
  return Error(Errc::kInvalidArgument, fmt::format("process set {} does not exist", id));
}

Status removed(int id) {
  return Status(Errc::kAborted, fmt::format("process set {} was removed", id));
}

/// Packs texts one after the other, each preceded by its length.
std::string pack(const std::string& text) {
  const std::uint64_t length = text.size();
  return std::string(reinterpret_cast<const char*>(&length), sizeof length) + text;
}

std::vector<std::string> unpack(std::string_view bytes) {
  std::vector<std::string> texts;
  while (bytes.size() >= sizeof(std::uint64_t)) {
    std::uint64_t length = 0;
    std::memcpy(&length, bytes.data(), sizeof length);
    bytes.remove_prefix(sizeof length);
    texts.emplace_back(bytes.substr(0, length));
    bytes.remove_prefix(texts.back().size());
  }
  return texts;
}

constexpr int kNoEngine = -1;

/// What a rank gives the other members of a set that is to be made: the id that is free there, the number of the engine
/// that it could use, and the ranks.
struct Offer {
  int id;
  int engine;
  std::string ranks;
};

/// Errors  Error(kInvalidArgument) for a text that is no offer.
Offer read_offer(std::string_view text) {
  const auto take_number = [&](int least) {
    const std::size_t end = std::min(text.find(' '), text.size());
    const auto number = parse_integer(text.substr(0, end), "process set", least, kMostMembersId);
    text.remove_prefix(std::min(end + 1, text.size()));
    return static_cast<int>(number);
  };
  const int id = take_number(ProcessSets::kFirstMembersId), engine = take_number(kNoEngine);
  return {id, engine, std::string(text)};
}

}  // namespace

ProcessSets::ProcessSets(JobFacts facts, const std::shared_ptr<Engine>& job)
    : facts_(std::move(facts)), job_(*job), shared_job_(job) {}

ProcessSets::~ProcessSets() {
  begin_shutdown(goodbye_reason(rank_text(facts_.rank, facts_.members), Goodbye::kShutdown));
  shutdown();
}

int ProcessSets::add(std::vector<int> ranks) {
  const MutexLock one_at_a_time(change_mutex_);
  std::sort(ranks.begin(), ranks.end());
  agree(fmt::format("to add {}", ranks));
  check_ranks(ranks);
  check_new(ranks);
  return make(std::move(ranks));
}

int ProcessSets::add_members(const std::vector<int>& ranks, const Exchange& exchange) {
  const MutexLock one_at_a_time(change_mutex_);
  check_ranks(ranks);
  if (std::find(ranks.begin(), ranks.end(), facts_.rank) == ranks.end())
    throw Error(Errc::kInvalidArgument,
                fmt::format("process set {}: {} is not in it", ranks, rank_text(facts_.rank, facts_.members)));
  const Exchange among_members = counted(exchange, ranks.size(), fmt::format("process set {}", ranks));
  int id = 0, number = kNoEngine;
  {
    const MutexLock lock(mutex_);
    id = next_members_id_;
    number = engine_of(ranks);
  }
  const std::string own = fmt::format("{}", ranks);
  bool have_engine = number != kNoEngine;
  for (const std::string& text : among_members(fmt::format("{} {} {}", id, number, own))) {
    const Offer offer = read_offer(text);
    if (offer.ranks != own)
      throw Error(Errc::kMismatch,
                  fmt::format("the ranks ask for different process sets: {} and {}", own, offer.ranks));
    id = std::max(id, offer.id);
    have_engine = have_engine && offer.engine == number;
  }
  if (have_engine) {
    share(id, ranks, number);
  } else {
    make(id, ranks, among_members);
  }
  return id;
}

void ProcessSets::remove(int id) {
  const MutexLock one_at_a_time(change_mutex_);
  if (id >= kFirstMembersId) return drop(id, removed(id));
  agree(fmt::format("to remove process set {}", id));
  if (id == 0) throw Error(Errc::kInvalidArgument, "process set 0 is the whole job, which cannot be removed");
  drop(id, removed(id));
  exchange("");  // until then some rank may still have the set
}

void ProcessSets::with_set(const std::vector<int>& ranks, const std::function<void(Engine* set)>& use) {
  const MutexLock one_at_a_time(change_mutex_);
  int id = 0;
  try {
    id = make(ranks);
  } catch (const Error& error) {
    // A rank may have been lost meanwhile. kUnavailable would mean that it is no use to try again.
    throw Error(error.code() == Errc::kUnavailable ? Errc::kConnect : error.code(), error.what());
  }
  Status why = removed(id);
  std::exception_ptr failure;
  try {
    const bool is_member = std::binary_search(ranks.begin(), ranks.end(), facts_.rank);
    use(is_member ? find(id, [] { return std::string("a transfer"); }).get() : nullptr);
  } catch (const std::exception& error) {
    const auto* const known = dynamic_cast<const Error*>(&error);
    why = known != nullptr ? Status(*known) : Status(Errc::kSystem, error.what());
    failure = std::current_exception();
  }
  drop(id, why);
  if (failure) std::rethrow_exception(failure);
}

/// Gives this rank's text to all ranks and returns the texts of all, by rank.
std::vector<std::string> ProcessSets::exchange(const std::string& own) {
  const std::string bytes = pack(own);
  Submission submission;
  submission.name = kExchangeName;
  submission.signature.kind = Kind::kAllgather;
  submission.signature.shape = {static_cast<std::int64_t>(bytes.size())};
  submission.input = bytes.data();
  const Engine::Outcome outcome = job_.run(lent(submission), std::nullopt);
  outcome.status.throw_if_failed();
  const Completion::Result& result = outcome.completion ? outcome.completion->result() : outcome.result;
  auto texts = unpack({static_cast<const char*>(result.data), static_cast<std::size_t>(result.shape.front())});
  if (texts.size() == facts_.members.size()) return texts;
  throw Error(Errc::kProtocol, "the exchange about process sets is malformed");
}

/// Throws unless all ranks ask for the same change.
void ProcessSets::agree(const std::string& change) {
  const std::vector<std::string> changes = exchange(change);
  if (std::all_of(changes.begin(), changes.end(), [&](const std::string& other) { return other == change; })) return;
  throw Error(Errc::kMismatch,
              fmt::format("the ranks ask for different process sets: {}", values_text(changes, facts_.members)));
}

void ProcessSets::check_ranks(const std::vector<int>& ranks) const {
  const int size = static_cast<int>(facts_.members.size());
  if (ranks.empty()) throw Error(Errc::kInvalidArgument, "a process set needs at least one rank");
  for (const int rank : ranks) {
    if (rank >= 0 && rank < size) continue;
    throw Error(Errc::kInvalidArgument,
                fmt::format("process set {}: the job of {} ranks has no rank {}", ranks, size, rank));
  }
  std::vector<int> sorted = ranks;
  std::sort(sorted.begin(), sorted.end());
  if (const auto twice = std::adjacent_find(sorted.begin(), sorted.end()); twice != sorted.end()) {
    throw Error(Errc::kInvalidArgument, fmt::format("process set {}: rank {} is in it twice", ranks, *twice));
  }
}

/// Throws if a set of add() has these ranks.
void ProcessSets::check_new(const std::vector<int>& ranks) const {
  int existing = ranks.size() == facts_.members.size() ? 0 : -1;
  const MutexLock lock(mutex_);
  for (const auto& [id, set] : sets_) existing = id < kFirstMembersId && set.ranks == ranks ? id : existing;
  if (existing < 0) return;
  throw Error(Errc::kInvalidArgument,
              fmt::format("process set {}: a set of these ranks already exists, process set {}", ranks, existing));
}

/// Makes a set of ranks that all ranks have agreed on, and returns its id.
int ProcessSets::make(std::vector<int> ranks) {
  int id = 0;
  {
    const MutexLock lock(mutex_);
    id = free_ids_.empty() ? next_id_ : free_ids_.front();
  }
  // Ranks that are not members take part, because all know all sets.
  const Exchange among_members = [&, ranks](const std::string& own) {
    const std::vector<std::string> all = exchange(own);
    std::vector<std::string> texts;
    for (const int rank : ranks) texts.push_back(all[static_cast<std::size_t>(rank)]);
    return texts;
  };
  make(id, std::move(ranks), among_members);
  return id;
}

/// Makes a set of ranks that its members have agreed on.
void ProcessSets::make(int id, std::vector<int> ranks, const Exchange& among_members) {
  const MeshPlan plan = plan_for(id, ranks);
  Prepared prepared = prepare_mesh(facts_.config, plan);
  const Meeting meeting = meet(facts_.config, plan, prepared, [&](const std::string&, const BootstrapBlob& own) {
    std::vector<BootstrapBlob> blobs;
    for (const std::string& text : among_members(encode(own))) {
      const int sender = static_cast<int>(blobs.size());
      blobs.push_back(decode_bootstrap_blob(text, rank_text(sender, plan.members)));
    }
    return blobs;
  });
  std::shared_ptr<Engine> engine;
  std::string failure;
  try {
    if (plan.rank >= 0) engine = connect(plan, std::move(prepared), meeting);
  } catch (const std::exception& error) {
    failure = error.what();
  }
  check_outcomes(plan, failure, among_members);
  if (plan.rank >= 0) log::info("process set {} of {} ranks; its backend: {}", id, plan.size(), meeting.backend);
  insert(id, {std::move(ranks), std::move(engine), id});
}

/// Removes a set on this rank; `why` is the reason that its operations in flight end with, also on the other ranks.
/// Errors  Error(kInvalidArgument) for an unknown one.
void ProcessSets::drop(int id, const Status& why) {
  std::shared_ptr<Engine> engine;
  bool is_shared = false;
  {
    const MutexLock lock(mutex_);
    const auto found = sets_.find(id);
    if (found == sets_.end()) throw unknown_set(id);
    engine = found->second.engine;
    is_shared = engine && (found->second.number == 0 || std::any_of(sets_.begin(), sets_.end(), [&](const auto& each) {
                             return each.first != id && each.second.engine == engine;
                           }));
  }
  if (is_shared) {
    engine->give_up(id, why);
    engine->settle_set(id, std::chrono::steady_clock::now() + 2 * Watcher::kGiveUpLimit);
  } else if (engine) {
    engine->begin_shutdown(why);
    engine->shutdown();
  }
  const MutexLock lock(mutex_);
  sets_.erase(id);
  if (id < kFirstMembersId) free_ids_.push_back(id);
}

/// The number of an engine that a further set of these ranks can use; kNoEngine for none.
int ProcessSets::engine_of(const std::vector<int>& ranks) const {
  const bool are_all = ranks.size() == facts_.members.size() && std::is_sorted(ranks.begin(), ranks.end());
  if (are_all) return job_.is_open() ? 0 : kNoEngine;
  for (const auto& [id, set] : sets_) {
    if (id >= kFirstMembersId && set.ranks == ranks && set.engine->is_open()) return set.number;
  }
  return kNoEngine;
}

/// Adds a set that uses an engine which all its members have.
void ProcessSets::share(int id, const std::vector<int>& ranks, int number) {
  Set set{ranks, shared_job_.lock(), number};
  const MutexLock lock(mutex_);
  closed_.throw_if_failed();
  for (const auto& [other, each] : sets_) {
    if (number != 0 && each.engine && each.number == number) set.engine = each.engine;
  }
  next_members_id_ = id + 1;
  sets_.emplace(id, std::move(set));
}

void ProcessSets::give_up(int id, const std::string& reason) {
  const std::string self = rank_text(facts_.rank, facts_.members);
  if (id == 0) return job_.give_up(0, Status(Errc::kAborted, fmt::format("{} gave the job up: {}", self, reason)));
  const std::shared_ptr<Engine> engine = find(id, [] { return std::string("giving up"); });
  const Status why(Errc::kAborted, fmt::format("{} gave process set {} up: {}", self, id, reason));
  if (id < kFirstMembersId) return job_.give_up(0, why);
  engine->give_up(id, why);
}

MeshPlan ProcessSets::plan_for(int id, const std::vector<int>& ranks) const {
  MeshPlan plan;
  std::vector<std::string> hosts;
  for (const int rank : ranks) {
    hosts.push_back(facts_.members.host(rank));
    plan.hosts.push_back(facts_.hosts[static_cast<std::size_t>(rank)]);
  }
  plan.members = Members(id, ranks, std::move(hosts));
  plan.rank = plan.members.index_of(facts_.rank).value_or(-1);
  plan.timeout = facts_.start_timeout;
  plan.job_key = facts_.job_key;
  plan.job_buffers = facts_.job_buffers;
  plan.ends_alone = id >= kFirstMembersId;
  return plan;
}

std::shared_ptr<Engine> ProcessSets::connect(const MeshPlan& plan, Prepared prepared, const Meeting& meeting) {
  const Deadline deadline = std::chrono::steady_clock::now() + plan.timeout;
  auto engine =
      make_engine(facts_.config, plan, std::move(prepared), meeting, facts_.timeline, deadline, cancel_.get());
  {
    const MutexLock lock(mutex_);
    closed_.throw_if_failed();
    connecting_ = engine;
  }
  const Status status = engine->connect(meeting.addresses);
  const MutexLock lock(mutex_);
  connecting_.reset();
  status.throw_if_failed();
  return engine;
}

/// Throws unless all members have connected. `own` is the reason why this rank could not connect; empty if it could.
void ProcessSets::check_outcomes(const MeshPlan& plan, const std::string& own, const Exchange& among_members) {
  const std::vector<std::string> outcomes = among_members(own);
  const auto failed =
      std::find_if(outcomes.begin(), outcomes.end(), [](const std::string& text) { return !text.empty(); });
  if (failed == outcomes.end()) return;
  throw Error(Errc::kUnavailable,
              fmt::format("process set {} cannot be made: {}: {}", plan.members.process_set(),
                          rank_text(static_cast<int>(failed - outcomes.begin()), plan.members), *failed));
}

void ProcessSets::insert(int id, Set set) {
  const std::shared_ptr<Engine> engine = set.engine;
  {
    const MutexLock lock(mutex_);
    closed_.throw_if_failed();
    if (id >= kFirstMembersId) {
      next_members_id_ = id + 1;
    } else if (free_ids_.empty()) {
      ++next_id_;
    } else {
      free_ids_.pop_front();
    }
    sets_.emplace(id, std::move(set));
  }
  if (!engine) return;
  if (id < kFirstMembersId)
    engine->on_failure([weak = shared_job_](const Status& why) {
      const std::shared_ptr<Engine> job = weak.lock();
      return job && job->fail(why);
    });
  engine->on_stall([weak = shared_job_](const Status& why, int late) {
    if (const std::shared_ptr<Engine> job = weak.lock()) job->stalled(why, late);
  });
}

std::shared_ptr<Engine> ProcessSets::find(int id, const std::function<std::string()>& what) const {
  const MutexLock lock(mutex_);
  const auto found = sets_.find(id);
  if (found == sets_.end())
    throw Error(Errc::kInvalidArgument, fmt::format("{}: process set {} does not exist", what(), id));
  if (found->second.engine) return found->second.engine;
  throw Error(Errc::kInvalidArgument, fmt::format("{}: {} is not in process set {}, whose ranks are {}", what(),
                                                  rank_text(facts_.rank, facts_.members), id, found->second.ranks));
}

std::vector<std::shared_ptr<Engine>> ProcessSets::engines() const {
  const MutexLock lock(mutex_);
  return own_engines();
}

std::vector<std::shared_ptr<Engine>> ProcessSets::own_engines() const {
  std::vector<std::shared_ptr<Engine>> found;
  for (const auto& [id, set] : sets_) {
    const bool is_own = set.engine && set.number != 0;
    if (is_own && std::find(found.begin(), found.end(), set.engine) == found.end()) found.push_back(set.engine);
  }
  return found;
}

std::vector<int> ProcessSets::ids() const {
  std::vector<int> result{0};
  const MutexLock lock(mutex_);
  for (const auto& [id, set] : sets_) {
    if (id < kFirstMembersId) result.push_back(id);
  }
  return result;
}

std::vector<int> ProcessSets::ranks(int id) const {
  std::vector<int> result;
  if (id == 0) {
    for (int rank = 0; rank < static_cast<int>(facts_.members.size()); ++rank) result.push_back(rank);
    return result;
  }
  const MutexLock lock(mutex_);
  const auto found = sets_.find(id);
  if (found == sets_.end()) throw unknown_set(id);
  return found->second.ranks;
}

std::vector<Wait> ProcessSets::waits() const {
  std::vector<Wait> all;
  for (const auto& engine : engines()) {
    for (Wait& wait : engine->waits()) all.push_back(std::move(wait));
  }
  return all;
}

/// Ends all sets, also one that is being connected.
void ProcessSets::close(const Status& why) {
  if (closed_.ok()) closed_ = why;
  if (connecting_) connecting_->end(why);
  cancel_.set();
}

void ProcessSets::end(const Status& why) {
  const MutexLock lock(mutex_);
  close(why);
  for (const auto& engine : own_engines()) engine->end(why);
}

void ProcessSets::begin_shutdown(const Status& why) {
  const MutexLock lock(mutex_);
  close(why);
  for (const auto& engine : own_engines()) engine->begin_shutdown(why);
}

void ProcessSets::shutdown() {
  for (const auto& engine : engines()) engine->shutdown();
}

}  // namespace runjob::runtime
