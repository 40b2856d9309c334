#include "runtime/engine/engine.hpp"

#include <algorithm>
#include <cerrno>
#include <numeric>
#include <poll.h>
#include <pthread.h>
#include <sys/eventfd.h>
#include <unistd.h>
#include <utility>

#include <fmt/format.h>

#include "base/error.hpp"

namespace runjob::runtime {
namespace {

/// Leaves room within the second that shutdown() may take for ending the backend.
constexpr std::chrono::milliseconds kFarewell{800};

/// Whether an operation has nothing for the backend to do: on every rank alike, whatever this one's part of it is.
bool moves_nothing(const Signature& signature, const Decision& decision) {
  if (signature.kind == Kind::kBarrier) return true;
  if (!has_own_first_extent(signature.kind)) return element_count(signature.shape) == 0;
  const auto has_rows = [](std::int64_t rows) { return rows != 0; };
  const bool rows = std::any_of(decision.first_extents.begin(), decision.first_extents.end(), has_rows);
  return !rows || element_count(Shape(signature.shape.begin() + 1, signature.shape.end())) == 0;
}

int poll_timeout(std::optional<ControlPlane::Clock::time_point> a, std::optional<ControlPlane::Clock::time_point> b) {
  if (!a || (b && *b < *a)) a = b;
  if (!a) return -1;
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(*a - ControlPlane::Clock::now());
  return left.count() > 0 ? static_cast<int>(left.count()) : 0;
}

}  // namespace

Engine::Engine(EngineParts parts) : parts_(std::move(parts)), wake_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  if (!wake_) throw system_error("eventfd", errno);
  calls_.emplace("runjob-calls", [this](const Call& call) { return parts_.backend->run(call); });
  thread_ = std::thread([this] { run(); });
}

Engine::~Engine() {
  shutdown();
}

Status Engine::connect(const std::vector<std::string>& addresses) {
  constexpr auto kVerdict = 2 * Coordinator::kVerdictGrace;
  Status status = parts_.backend->connect(addresses);
  const MutexLock lock(mutex_);
  --running_;
  if (phase_ != Phase::kRunning) wake();
  if (status.ok()) return status;
  failures_.push_back(status);
  wake();
  const auto deadline = Clock::now() + kVerdict;
  while (phase_ == Phase::kRunning) {
    if (phase_changed_.wait_until(mutex_, deadline) == std::cv_status::timeout) return status;
  }
  return end_;
}

std::shared_ptr<Completion> Engine::submit(Submission submission) {
  Signature& signature = submission.signature;
  if (signature.kind == Kind::kAlltoall && signature.splits.empty())
    signature.splits = even_splits(submission.name, signature.shape, parts_.size);
  check_operation(submission.name, submission.signature, parts_.size);
  auto completion = std::make_shared<Completion>();
  const MutexLock lock(mutex_);
  if (phase_ != Phase::kRunning || stop_) end_.throw_if_failed();
  if (entries_.count(submission.name) != 0) {
    throw Error(Errc::kInvalidArgument,
                fmt::format("{} '{}': an operation of this name is still in flight on {}",
                            to_string(submission.signature.kind), submission.name, parts_.self));
  }
  const bool first = submitted_.empty();
  submitted_.push_back({submission.name, submission.signature});
  std::string name = submission.name;
  entries_.emplace(std::move(name), Entry{std::move(submission), completion, false, {}});
  if (first) wake();
  return completion;
}

void Engine::shutdown() {
  const MutexLock one_at_a_time(shutdown_mutex_);
  if (!thread_.joinable()) return;
  {
    const MutexLock lock(mutex_);
    stop_ = true;
    if (end_.ok()) end_ = Status(Errc::kAborted, parts_.self + " called shutdown()");
    wake();
  }
  thread_.join();
  Status end;
  Entries left;
  {
    const MutexLock lock(mutex_);
    phase_ = Phase::kEnded;
    end = end_;
  }
  parts_.backend->abort(end);
  calls_.reset();  // every call is done after this
  parts_.backend.reset();
  {
    const MutexLock lock(mutex_);
    left.swap(entries_);
  }
  for (auto& [name, entry] : left) finish(std::move(entry), end);
  parts_.control.reset();
  parts_.timeline.reset();
}

void Engine::run() {
  ::pthread_setname_np(::pthread_self(), "runjob-engine");
  while (!may_stop(Clock::now())) step();
}

/// Shutdown was asked for, and the other ranks need nothing from this one any more or had their time.
bool Engine::may_stop(Clock::time_point now) {
  const MutexLock lock(mutex_);
  if (!stop_) return false;
  if (!stop_deadline_) stop_deadline_ = now + kFarewell;
  return now >= *stop_deadline_ || (phase_ == Phase::kEnded && running_ == 0);
}

void Engine::step() {
  std::vector<pollfd> descriptors;
  wait_for_events(descriptors);
  send_local_events();
  parts_.control->on_events(descriptors, Clock::now());
  for (const Decision& decision : parts_.control->take()) apply(decision);
}

void Engine::wait_for_events(std::vector<pollfd>& descriptors) {
  descriptors.push_back({wake_.get(), POLLIN, 0});
  parts_.control->watch(descriptors);
  const int ready =
      ::poll(descriptors.data(), descriptors.size(), poll_timeout(parts_.control->deadline(), stop_deadline_));
  if (ready < 0) {
    for (pollfd& descriptor : descriptors) descriptor.revents = 0;  // interrupted by a signal
  }
  std::uint64_t count = 0;
  if ((descriptors.front().revents & POLLIN) != 0) {
    static_cast<void>(!::read(wake_.get(), &count, sizeof count));  // only empties it
  }
}

/// Tells the coordinator what happened on this rank.
void Engine::send_local_events() {
  std::vector<RankMessage> messages;
  bool marks_cycle = false;
  {
    const MutexLock lock(mutex_);
    if (phase_ == Phase::kRunning && !submitted_.empty()) {
      messages.push_back({RankMessage::Type::kSubmit, std::exchange(submitted_, {}), {}});
      marks_cycle = true;
    }
    submitted_.clear();
    for (Status& failure : std::exchange(failures_, {})) {
      messages.push_back({RankMessage::Type::kFailed, {}, std::move(failure)});
    }
    if (stop_ && !std::exchange(goodbye_sent_, true)) messages.push_back({RankMessage::Type::kGoodbye, {}, {}});
    if (phase_ == Phase::kLeaving && running_ == 0 && !std::exchange(drained_sent_, true)) {
      messages.push_back({RankMessage::Type::kDrained, {}, {}});
    }
  }
  if (marks_cycle && parts_.timeline) parts_.timeline->mark_cycle();
  for (const RankMessage& message : messages) parts_.control->send(message);
}

void Engine::apply(const Decision& decision) {
  switch (decision.type) {
    case Decision::Type::kExecute:
      return execute(decision);
    case Decision::Type::kReject:
      return reject(decision);
    case Decision::Type::kLeaving:
      leave(Phase::kLeaving, decision.status);
      return wake();  // the drained message may be due at once
    case Decision::Type::kAbort:
      leave(Phase::kEnded, decision.status);
      return parts_.backend->abort(decision.status);
    case Decision::Type::kReleased:
      return leave(Phase::kEnded, Status(Errc::kAborted, "the job is over"));
  }
}

void Engine::execute(const Decision& decision) {
  Entry* entry = nullptr;
  {
    const MutexLock lock(mutex_);
    const auto found = entries_.find(decision.name);
    if (found == entries_.end()) {
      failures_.emplace_back(Errc::kBug, fmt::format("told to run '{}', which was not submitted here", decision.name));
      return wake();
    }
    entry = &found->second;
    entry->running = true;
    ++running_;
  }
  const Signature& signature = entry->submission.signature;
  if (parts_.timeline) parts_.timeline->begin(decision.name, signature.kind);
  Status failure;
  try {
    Call call = prepare(*entry, decision);
    if (moves_nothing(signature, decision)) return on_done(decision.name, {});
    if (parts_.timeline) parts_.timeline->begin_activity(decision.name, "QUEUE");
    return calls_->start(std::move(call),
                         [this, name = decision.name](Status status) { on_done(name, std::move(status)); });
  } catch (const std::exception& error) {  // no memory for the result: the others cannot go on without us
    failure = Status(Errc::kSystem, fmt::format("{} '{}': {}", to_string(signature.kind), decision.name, error.what()));
  }
  on_done(decision.name, failure);
}

Call Engine::prepare(Entry& entry, const Decision& decision) {
  const Submission& submission = entry.submission;
  const Signature& signature = submission.signature;
  Call call{.kind = signature.kind,
            .dtype = signature.dtype,
            .op = signature.op,
            .root = signature.root,
            .prescale = signature.prescale,
            .postscale = signature.postscale,
            .input = submission.input,
            .output = submission.output,
            .count = static_cast<std::size_t>(element_count(signature.shape)),
            .counts = {},
            .send_counts = {},
            .largest_part = 0,
            .on_stage = nullptr};
  divide(entry, decision, call);
  if (parts_.timeline) {
    call.on_stage = [timeline = parts_.timeline.get(), name = submission.name](const char* stage) {
      timeline->end_activity(name);
      timeline->begin_activity(name, stage);
    };
  }
  return call;
}

/// The parts of those operations that have a part for, or of, each rank; and room for their results.
void Engine::divide(Entry& entry, const Decision& decision, Call& call) {
  const Signature& signature = entry.submission.signature;
  if (!has_own_first_extent(signature.kind) && signature.kind != Kind::kReducescatter) return;
  const auto size = static_cast<std::size_t>(parts_.size);
  const auto own = static_cast<std::size_t>(parts_.rank);
  Shape rows;  // of each rank: gathered from it, received from it, or scattered to it
  if (signature.kind == Kind::kAllgather) rows = decision.first_extents;
  for (std::size_t rank = 0; rank < size; ++rank) {
    if (signature.kind == Kind::kAlltoall) rows.push_back(decision.first_extents.at(rank * size + own));
    if (signature.kind == Kind::kReducescatter)
      rows.push_back(scattered_rows(signature.shape.front(), static_cast<int>(rank), parts_.size));
  }
  const std::int64_t row_count = element_count(Shape(signature.shape.begin() + 1, signature.shape.end()));
  for (const std::int64_t each : rows) call.counts.push_back(static_cast<std::size_t>(each * row_count));
  for (const std::int64_t each : signature.splits)
    call.send_counts.push_back(static_cast<std::size_t>(each * row_count));
  if (signature.kind == Kind::kAlltoall)
    call.largest_part = static_cast<std::size_t>(
        row_count * *std::max_element(decision.first_extents.begin(), decision.first_extents.end()));
  const std::int64_t sum = std::accumulate(rows.begin(), rows.end(), std::int64_t{0});
  prepare_result(entry, call, signature.kind == Kind::kReducescatter ? rows[own] : sum);
  if (signature.kind == Kind::kAlltoall) entry.result.received_splits = std::move(rows);
}

void Engine::prepare_result(Entry& entry, Call& call, std::int64_t rows) {
  Completion::Result& result = entry.result;
  result.shape = entry.submission.signature.shape;
  result.shape.front() = rows;
  const auto bytes = static_cast<std::size_t>(element_count(result.shape)) * size_of(call.dtype);
  result.bytes = std::make_unique_for_overwrite<std::byte[]>(bytes);
  call.output = result.bytes.get();
}

void Engine::reject(const Decision& decision) {
  if (parts_.timeline) parts_.timeline->reject(decision.name);
  if (auto entry = take_entry(decision.name)) finish(std::move(*entry), decision.status);
}

/// Ends what the backend does not work on; what it does work on ends in on_done().
void Engine::leave(Phase phase, const Status& status) {
  std::vector<Entry> waiting;
  {
    const MutexLock lock(mutex_);
    if (phase_ == Phase::kRunning) end_ = status;  // the first cause is the one to tell
    if (phase_ == Phase::kLeaving && status.code() != Errc::kAborted) end_ = status;  // a loss explains more
    phase_ = phase;
    phase_changed_.notify_all();
    for (auto entry = entries_.begin(); entry != entries_.end();) {
      if (entry->second.running) {
        ++entry;
      } else {
        waiting.push_back(std::move(entry->second));
        entry = entries_.erase(entry);
      }
    }
  }
  for (Entry& entry : waiting) finish(std::move(entry), status);
}

/// On the backend's thread or, when there is nothing to exchange, on the engine's.
void Engine::on_done(const std::string& name, Status status) {
  std::optional<Entry> entry;
  {
    const MutexLock lock(mutex_);
    --running_;
    if (phase_ != Phase::kRunning) wake();
    const auto found = entries_.find(name);
    found->second.running = false;
    if (!status.ok() && phase_ != Phase::kEnded) {  // stays in flight until the coordinator knows what really happened
      failures_.push_back(std::move(status));
      return wake();
    }
    if (!status.ok()) status = end_;
    entry = std::move(found->second);  // at once: between two locks, the end of the job could take it
    entries_.erase(found);
  }
  if (parts_.timeline) parts_.timeline->end_activity(name);
  finish(std::move(*entry), std::move(status));
}

std::optional<Engine::Entry> Engine::take_entry(const std::string& name) {
  const MutexLock lock(mutex_);
  const auto found = entries_.find(name);
  if (found == entries_.end()) return std::nullopt;
  Entry entry = std::move(found->second);
  entries_.erase(found);
  return entry;
}

void Engine::finish(Entry entry, Status status) {
  const Signature& signature = entry.submission.signature;
  if (parts_.timeline) parts_.timeline->end(entry.submission.name, signature.dtype, signature.shape);
  if (!status.ok()) entry.result = {};
  entry.completion->finish(std::move(status), std::move(entry.result));
}

void Engine::wake() {
  const std::uint64_t one = 1;
  static_cast<void>(!::write(wake_.get(), &one, sizeof one));  // full means awake
}

}  // namespace runjob::runtime
