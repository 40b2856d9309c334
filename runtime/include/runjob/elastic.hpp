#pragma once

/// Elastic training in C++: a function that goes on with other ranks when some are lost or added.
///
///     runjob::init();
///     runjob::elastic::State state;
///     state.add(std::span(weights)).add(step);
///     const bool finished = runjob::elastic::run(state, [&] {
///       while (step < 1000) {
///         ...
///         ++step;
///         state.commit();
///       }
///     });
///     runjob::shutdown();
///     return 0;  // also when it is not finished: then the job does not need this process any more
///
/// docs/elastic.md has what the launcher does. In a job of fixed size run() gives all ranks the state of rank 0, calls
/// the function once, and raises its errors.
///
/// Owner, Errors  as in runjob.hpp.
/// Threads        one calls run(), and the functions of the state within it.

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <functional>
#include <limits>
#include <runjob/runjob.hpp>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace runjob {
inline namespace v0 {
namespace elastic {

/// Thrown by State::commit() and State::check_host_updates(), on all ranks in the same call, when the job's hosts have
/// changed. run() catches it; the function must let it pass. It is no std::exception for that reason.
struct HostsUpdated {};

/// Thrown by the same calls on a rank that is to leave the job. run() catches it.
struct Leaving {};

/// The state from which training goes on. Its commit is a copy that this process restores when a rank is lost.
///
/// All ranks add the same parts in the same order, before run(). There are three kinds:
///
///   spans       large arrays, such as weights. A commit copies them into the same memory each time. They are sent only
///               to ranks that do not have the newest commit.
///   values      numbers and other small objects, such as a step. All ranks get those of rank 0.
///   serialized  what the program turns into bytes, such as containers. All ranks get those of rank 0.
///
/// Owner  the parts are lent for the state's life: their memory must not move, so a vector must keep its size.
class State {
 public:
  /// Turns objects of the program into bytes, and back. Each may throw; save() then leaves the older commit whole.
  using Save = std::function<std::vector<std::byte>()>;
  using Load = std::function<void(std::span<const std::byte>)>;

  State() = default;
  State(const State&) = delete;
  State& operator=(const State&) = delete;

  template <class T>
  requires(std::is_trivially_copyable_v<T> && !std::is_const_v<T>) State& add(std::span<T> values) {
    spans_.push_back(std::as_writable_bytes(values));
    return *this;
  }
  template <class T>
  requires(std::is_trivially_copyable_v<T> && !std::is_const_v<T> && !std::is_pointer_v<T>) State& add(T& value) {
    values_.push_back(std::as_writable_bytes(std::span(&value, 1)));
    return *this;
  }
  State& add(Save save, Load load) {
    serialized_.push_back({std::move(save), std::move(load)});
    return *this;
  }

  /// `callback` runs once in each generation after the first one, before rank 0's state arrives, for example to adapt
  /// the learning rate to the number of ranks.
  void on_reset(std::function<void()> callback) { reset_callbacks_.push_back(std::move(callback)); }

  /// Copies the state, then checks for changed hosts. All ranks call it in the same step.
  void commit() {
    if (runjob_elastic() == 1) detail::check(runjob_check(-1));  // what they write is whole once they have ended
    commit_live();
    check_host_updates();
  }

  /// All ranks call it in the same step. Costs one small allreduce in an elastic job, nothing in another one. When the
  /// hosts have changed, it costs one more and a wait for the operations in flight: no rank leaves the generation
  /// before all operations have ended on all ranks.
  void check_host_updates() {
    if (runjob_elastic() != 1) return;
    std::int32_t update = 0, leaving = 0;
    detail::check(runjob_elastic_pending(&update, &leaving));
    std::uint8_t largest = update != 0 ? 1 : 0;
    Communicator().allreduce(std::span(&largest, 1), "runjob.elastic.check", ReduceOp::max);
    if (largest == 0) {
      ++steps_begun_;
      return;
    }
    detail::check(runjob_check(-1));
    largest = 0;
    Communicator().allreduce(std::span(&largest, 1), "runjob.elastic.settled", ReduceOp::max);
    if (leaving != 0) throw Leaving();
    throw HostsUpdated();
  }

  /// Copies the state without a check. Throws what a Save throws; then nothing has changed.
  void save() {
    std::vector<std::byte> plain = pack();
    const std::int64_t number = std::exchange(number_, -1);  // a copy that is interrupted is none
    is_whole_ = false;
    arrays_.resize(total_bytes(spans_));
    std::byte* to = arrays_.data();
    for (const std::span<std::byte> each : spans_) to = std::copy(each.begin(), each.end(), to);
    plain_ = std::move(plain);
    is_whole_ = true;
    number_ = number;
  }

  /// Puts the copy back. Does nothing before the first one, and while this process has a part of another rank's only.
  void restore() {
    if (!is_whole_) return;
    unpack_arrays();
    unpack(plain_);
  }

 private:
  template <class Function>
  friend bool run(State& state, Function&& function);
  friend class Loop;

  using Bytes = std::span<std::byte>;
  struct Serialized {
    Save save;
    Load load;
  };
  /// The same on all ranks, or their states cannot be exchanged.
  struct Form {
    std::int64_t spans, span_bytes, values, value_bytes, serialized, hash;
    bool operator==(const Form&) const = default;
  };

  static std::size_t total_bytes(const std::vector<Bytes>& parts) {
    std::size_t bytes = 0;
    for (const Bytes each : parts) bytes += each.size();
    return bytes;
  }

  Form form() const {
    std::uint64_t hash = 14695981039346656037u;  // FNV-1a over the sizes
    for (const auto* parts : {&spans_, &values_}) {
      for (const Bytes each : *parts) hash = (hash ^ each.size()) * 1099511628211u;
    }
    const auto count = [](const auto& parts) { return static_cast<std::int64_t>(parts.size()); };
    return {count(spans_),      static_cast<std::int64_t>(total_bytes(spans_)),
            count(values_),     static_cast<std::int64_t>(total_bytes(values_)),
            count(serialized_), static_cast<std::int64_t>(hash)};
  }

  /// The values, then each serialized part with its length before it. One byte more than needed, so that it is never
  /// empty.
  std::vector<std::byte> pack() const {
    std::vector<std::byte> bytes(1);
    for (const Bytes each : values_) bytes.insert(bytes.end(), each.begin(), each.end());
    for (const Serialized& each : serialized_) {
      const std::vector<std::byte> part = each.save();
      const std::uint64_t size = part.size();
      const auto length = std::as_bytes(std::span(&size, 1));
      bytes.insert(bytes.end(), length.begin(), length.end());
      bytes.insert(bytes.end(), part.begin(), part.end());
    }
    return bytes;
  }

  void unpack(std::span<const std::byte> bytes) {
    bytes = bytes.subspan(1);
    for (const Bytes each : values_) {
      std::copy_n(bytes.begin(), each.size(), each.begin());
      bytes = bytes.subspan(each.size());
    }
    for (const Serialized& each : serialized_) {
      std::uint64_t size = 0;
      std::memcpy(&size, bytes.data(), sizeof size);
      each.load(bytes.subspan(sizeof size, size));
      bytes = bytes.subspan(sizeof size + size);
    }
  }

  void unpack_arrays() {
    const std::byte* from = arrays_.data();
    for (const Bytes each : spans_) {
      std::copy_n(from, each.size(), each.begin());
      from += each.size();
    }
  }

  void commit_live() {
    ++commits_;
    save();
    number_ = commits_;
    steps_begun_ = 0;
  }

  void call_reset_callbacks() {
    for (const std::function<void()>& each : reset_callbacks_) each();
  }

  /// Gives all ranks the state of rank 0, and leaves all with a commit. `brought`: the commit numbers of the ranks at
  /// the meeting; empty in the generation in which run() was entered. Then the spans of rank 0 count.
  void sync(const std::vector<std::int64_t>& brought) {
    const Communicator world;
    const std::int64_t newest = brought.empty() ? -1 : *std::max_element(brought.begin(), brought.end());
    const auto rank = static_cast<std::size_t>(world.rank());
    const bool is_root = rank == 0;
    const bool lacks = newest >= 0 ? brought[rank] < newest : !is_root;
    if (!lacks) save();
    agree_on_form(world);
    transfer_arrays(lacks);
    std::int64_t size = static_cast<std::int64_t>(plain_.size());
    world.broadcast(std::span(&size, 1), 0, "runjob.elastic.plain.size");
    std::vector<std::byte> plain = plain_;  // until all of it is here, this process's own remains
    plain.resize(static_cast<std::size_t>(size));
    world.broadcast(as_numbers(plain), 0, "runjob.elastic.plain");
    plain_ = std::move(plain);
    is_whole_ = true;
    if (lacks) unpack_arrays();
    if (!is_root) unpack(plain_);
    number_ = commits_ = std::max<std::int64_t>(0, brought.empty() ? commits_ : newest);
  }

  /// Throws Error(RUNJOB_MISMATCH) on all ranks when the state of one has another form than rank 0's.
  void agree_on_form(const Communicator& world) const {
    const Form mine = form();
    Form theirs = mine;
    world.broadcast(std::span(&theirs.spans, sizeof(Form) / sizeof(std::int64_t)), 0, "runjob.elastic.form");
    std::vector<std::uint8_t> differs(static_cast<std::size_t>(world.size()));
    differs[static_cast<std::size_t>(world.rank())] = mine == theirs ? 0 : 1;
    world.allreduce(std::span(differs), "runjob.elastic.form.differs", ReduceOp::max);
    const auto found = std::find(differs.begin(), differs.end(), 1);
    if (found == differs.end()) return;
    const auto text = [](const Form& form) {
      return std::to_string(form.spans) + " spans of " + std::to_string(form.span_bytes) + " bytes, " +
             std::to_string(form.values) + " values of " + std::to_string(form.value_bytes) + " bytes and " +
             std::to_string(form.serialized) + " serialized parts";
    };
    std::string message = "the state of rank " + std::to_string(found - differs.begin()) +
                          " has other parts than rank 0's; add the same parts in the same order on all ranks";
    if (!(mine == theirs))
      message += ". This is rank " + std::to_string(world.rank()) + ", with " + text(mine) + "; rank 0 has " +
                 text(theirs) + (text(mine) == text(theirs) ? ", of other sizes" : "");
    throw Error(RUNJOB_MISMATCH, message.c_str());
  }

  /// From the commit of rank 0 into those of the ranks that lack it. The others take no part.
  void transfer_arrays(bool lacks) {
    const auto bytes = static_cast<std::int64_t>(total_bytes(spans_));
    if (lacks) {
      number_ = -1;
      is_whole_ = false;
      arrays_.resize(static_cast<std::size_t>(bytes));
    }
    void* const memory = arrays_.data();
    detail::check(runjob_elastic_transfer(&memory, &bytes, 1, lacks ? 1 : 0));
  }

  static std::span<std::uint8_t> as_numbers(Bytes bytes) {
    return {reinterpret_cast<std::uint8_t*>(bytes.data()), bytes.size()};
  }

  std::vector<Bytes> spans_, values_;
  std::vector<Serialized> serialized_;
  std::vector<std::function<void()>> reset_callbacks_;
  std::vector<std::byte> arrays_, plain_;  // the commit
  bool is_whole_ = false;                  // false before the first commit, and after a part of one
  std::int64_t number_ = -1;               // of the newest commit of this process; -1: it has none that is whole
  std::int64_t commits_ = -1;              // how often all ranks have committed, also when it failed here
  std::int64_t steps_begun_ = 0;           // since the newest commit of this process
};

/// True when another generation would meet the same error again.
inline bool is_never_retried(const Error& error) {
  switch (error.code()) {
    case RUNJOB_INVALID_ARGUMENT:
    case RUNJOB_NOT_INITIALIZED:
    case RUNJOB_MISMATCH:
    case RUNJOB_UNAVAILABLE:
      return true;
    default:  // a later librunjob may have more codes
      return false;
  }
}

/// The generations of one run().
class Loop {
 public:
  explicit Loop(State& state) : state_(state) {
    detail::check(runjob_elastic_enter());
    must_meet_ = runjob_generation() < 0;
  }

  /// Makes this process a member of a generation, with rank 0's state. The first step begins.
  void begin() {
    must_meet_ ? meet() : state_.sync({});
    state_.steps_begun_ = 1;
  }

  /// The hosts have changed: the next generation goes on with the live state.
  void on_hosts_updated() {
    state_.commit_live();
    reason_.clear();
    must_meet_ = true;
  }

  /// Returns false for an error that the next generation cannot mend.
  bool on_error(const Error& error) {
    if (is_never_retried(error) || !is_member_) return false;
    const bool others_are_the_cause = error.code() == RUNJOB_PEER_LOST || error.code() == RUNJOB_ABORTED;
    reason_ = others_are_the_cause ? "" : error.what();
    must_restore_ = must_meet_ = true;
    return true;
  }

 private:
  void meet() {
    is_member_ = false;
    detail::check(runjob_elastic_steps(std::exchange(state_.steps_begun_, 0)));
    detail::check(runjob_elastic_meet(state_.number_, reason_.empty() ? nullptr : reason_.c_str()));
    is_member_ = true;
    must_meet_ = false;
    if (std::exchange(must_restore_, false)) state_.restore();  // nothing of the older generation is in flight now
    state_.call_reset_callbacks();
    std::vector<std::int64_t> brought(static_cast<std::size_t>(runjob_size()));
    detail::check(runjob_elastic_commits(brought.data()));
    state_.sync(brought);
  }

  State& state_;
  std::string reason_;  // the error because of which this process cannot go on; empty: others are the cause
  bool must_meet_ = false, must_restore_ = false, is_member_ = true;
};

/// Calls function() in each generation: again from the last commit when a rank is lost or a collective fails, and from
/// the live state when hosts have changed.
///
/// Returns true when the function has returned; false when the job does not need this process any more, which then
///         ends with status 0.
/// Errors  those of the function that are no runjob::Error; RUNJOB_MISMATCH, RUNJOB_UNAVAILABLE,
///         RUNJOB_NOT_INITIALIZED and RUNJOB_INVALID_ARGUMENT, which another generation would meet again;
///         RUNJOB_ABORTED when the job ends; in a job of fixed size all others too.
template <class Function>
[[nodiscard]] bool run(State& state, Function&& function) {
  if (runjob_elastic() != 1) {
    state.sync({});
    function();
    return true;
  }
  Loop loop(state);
  for (;;) {
    try {
      loop.begin();
      function();
      return true;
    } catch (const HostsUpdated&) {
      loop.on_hosts_updated();
    } catch (const Leaving&) {
      return false;
    } catch (const Error& error) {
      if (!loop.on_error(error)) throw;
    }
  }
}

}  // namespace elastic
}  // namespace v0
}  // namespace runjob
