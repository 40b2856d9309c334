#include "runtime/collectives/hierarchical/leader_exchange.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <limits>
#include <sys/epoll.h>

#include <fmt/format.h>

namespace runjob::runtime {
namespace {

void watch(const UniqueFd& poll, int fd) {
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.fd = fd;
  if (::epoll_ctl(poll.get(), EPOLL_CTL_ADD, fd, &event) != 0) throw system_error("epoll_ctl", errno);
}

UniqueFd make_poll(int links, const EventFd& event) {
  UniqueFd poll(::epoll_create1(EPOLL_CLOEXEC));
  if (!poll) throw system_error("epoll_create1", errno);
  watch(poll, links);
  watch(poll, event.get());
  return poll;
}

std::int64_t now_ns() {
  return LeaderExchange::Clock::now().time_since_epoch() / std::chrono::nanoseconds(1);
}

int milliseconds_until(LeaderExchange::Clock::time_point deadline) {
  if (deadline == LeaderExchange::Clock::time_point::max()) return -1;
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - LeaderExchange::Clock::now()).count();
  return static_cast<int>(std::clamp<std::int64_t>(left, 0, std::numeric_limits<int>::max()));
}

}  // namespace

LeaderExchange::LeaderExchange(const Topology& topology, Group& group, const FarBoard& board,
                               std::vector<ControlChannel> channels, std::chrono::microseconds spin,
                               std::vector<int> names)
    : topology_(topology),
      group_(group),
      board_(board),
      way_{topology.host(), topology.hosts()},
      names_(std::move(names)),
      links_(std::move(channels)),
      step_(way_.steps()),
      early_(static_cast<std::size_t>(topology.hosts())),
      given_ns_(static_cast<std::size_t>(topology.size())),
      spin_(spin),
      driver_poll_(make_poll(links_.descriptor(), wake_driver_)),
      receiver_(links_.descriptor(), [this] {
        receive_all();
        if (receiver_.is_driver_inside()) interrupt();  // it may have looked just before
      }) {}

LeaderExchange::~LeaderExchange() = default;

std::string LeaderExchange::begin(std::string block) {
  const MutexLock lock(mutex_);
  failure_.throw_if_failed();  // first: a round that has not begun is not complete
  round_ = ++own_round_;
  step_ = 0;
  std::swap(blocks_, block);
  ends_.assign(1, blocks_.size());
  aged_ns_.assign(1, has_ages(blocks_) ? now_ns() : 0);
  links_.send(way_.target(0), {Type::kBlocks, round_, blocks_});
  advance_steps();
  return block;
}

bool LeaderExchange::advance() {
  has_advanced();
  const MutexLock lock(mutex_);
  if (step_ == way_.steps()) return true;
  failure_.throw_if_failed();
  return false;
}

/// Reads from the one host whose message is awaited. True when there is something to advance() with.
bool LeaderExchange::has_advanced() {
  const MutexLock lock(mutex_);
  if (step_ == way_.steps() || !failure_.ok()) return true;
  const int step = step_, source = way_.source(step_);
  guarded([&](const auto& on_frame, const auto& on_end) { links_.receive_from(source, on_frame, on_end); });
  return step_ != step || !failure_.ok();
}

std::int64_t LeaderExchange::given_at(int rank) const {
  const MutexLock lock(mutex_);
  return given_ns_[static_cast<std::size_t>(rank)];
}

void LeaderExchange::wait(Clock::time_point deadline) {
  const auto begin = Clock::now();
  while (Clock::now() - begin < spin_.time()) {
    if (has_advanced()) return spin_.reached_while_spinning();
  }
  look_for_silence(begin);
  epoll_event events[2];
  ::epoll_wait(driver_poll_.get(), events, 2, milliseconds_until(std::min(deadline, next_look_)));
  spin_.reached_after_sleep(Clock::now() - begin);
  wake_driver_.clear();
  receive_all();
}

/// A host that is out of reach fails the exchange: without this look, its silence would be taken for a long computation.
void LeaderExchange::look_for_silence(Clock::time_point now) {
  if (now < next_look_) return;
  next_look_ = now + SilenceWatch::kLookEvery;
  const MutexLock lock(mutex_);
  links_.find_silent(now, [this](int host, const std::string& reason) {
    if (has_leader_left(host)) return;
    lost_rank_ = leader_name(host);
    fail(Error(Errc::kConnect, fmt::format("rank {}: {}", leader_name(host), reason)));
  });
}

void LeaderExchange::tell_begun() {
  const MutexLock lock(mutex_);
  for (int host = 0; host < topology_.hosts(); ++host) {
    if (host != way_.target(0)) links_.send(host, {Type::kBegun, round_, {}});
  }
}

void LeaderExchange::ask(std::uint64_t round) {
  const MutexLock lock(mutex_);
  links_.send_to_all({Type::kAsk, round, present(round)});
}

void LeaderExchange::tell_left(int rank, std::uint64_t round) {
  const auto number = static_cast<std::int32_t>(rank);
  const MutexLock lock(mutex_);
  if (rank == topology_.rank()) round = round_;  // what it has given and not sent nobody will hear of
  links_.send_to_all({Type::kLeft, round, {reinterpret_cast<const char*>(&number), sizeof number}});
}

void LeaderExchange::interrupt() {
  wake_driver_.set();
}

void LeaderExchange::close() {
  {
    const MutexLock lock(mutex_);
    if (failure_.ok()) failure_ = Status(Errc::kAborted, "the connections between the hosts were ended");
    links_.close();
  }
  interrupt();
}

Rounds::Traffic LeaderExchange::traffic() const {
  const MutexLock lock(mutex_);
  return {links_.messages_sent(), links_.bytes_sent()};
}

void LeaderExchange::receive_all() {
  const MutexLock lock(mutex_);
  guarded([this](const auto& on_frame, const auto& on_end) { links_.receive(on_frame, on_end); });
}

/// Takes in what `receive` finds, and goes on with it. A failure shows in the driver's next call.
template <class Receive>
void LeaderExchange::guarded(Receive receive) {
  try {
    receive([this](int host, const Frame& frame) { on_frame(host, frame); }, [this](int host) { on_end(host); });
    if (failure_.ok()) advance_steps();
  } catch (const Error& error) {
    fail(error);
  } catch (const std::exception& error) {
    fail(Error(Errc::kSystem, error.what()));
  }
}

/// Does all steps whose messages are there.
void LeaderExchange::advance_steps() {
  while (step_ < way_.steps()) {
    const int source = way_.source(step_);
    auto& early = early_[static_cast<std::size_t>(source)];
    if (early.empty()) {
      // One that has left may have ended before it has passed everything on.
      if (!links_.is_open(source)) throw_rank_lost(topology_.ranks(source).front());
      return;
    }
    if (early.front().round != round_) throw Error(Errc::kProtocol, "a host has sent messages of another round");
    const Blocks blocks = std::move(early.front());
    early.pop_front();
    take_step(blocks.bytes, blocks.received_ns);
  }
}

/// True when the present step waits for just these blocks.
bool LeaderExchange::is_awaited(int host, std::uint64_t round) const {
  return failure_.ok() && step_ < way_.steps() && host == way_.source(step_) && round == round_ &&
         early_[static_cast<std::size_t>(host)].empty();
}

/// The message of the present step has come. Sends the next one.
void LeaderExchange::take_step(std::string_view bytes, std::int64_t received_ns) {
  take_blocks(bytes, received_ns, way_.source(step_), way_.blocks(step_));
  if (++step_ == way_.steps()) return group_.publish(board_.heard(), round_);
  refresh_ages(way_.blocks(step_));
  const std::size_t end = ends_[static_cast<std::size_t>(way_.blocks(step_)) - 1];
  links_.send(way_.target(step_), {Type::kBlocks, round_, std::string_view(blocks_).substr(0, end)});
}

/// Adds the time that the first `count` blocks have lain here to their ages.
void LeaderExchange::refresh_ages(int count) {
  std::size_t begin = 0;
  for (int i = 0; i < count; ++i) {
    const auto index = static_cast<std::size_t>(i);
    char* const block = blocks_.data() + begin;
    begin = ends_[index];
    if (!has_ages({block, begin - static_cast<std::size_t>(block - blocks_.data())})) continue;
    const std::int64_t now = now_ns();
    const std::vector<int>& ranks = topology_.ranks((way_.host + i) % topology_.hosts());
    add_age(block, ranks.size(), age_us(aged_ns_[index], now));
    aged_ns_[index] = now;
  }
}

/// Puts the blocks of `count` hosts from `source` on on the board.
void LeaderExchange::take_blocks(std::string_view bytes, std::int64_t received_ns, int source, int count) {
  std::string_view rest = bytes;
  for (int i = 0; i < count; ++i) {
    const int host = (source + i) % topology_.hosts();
    const std::vector<int>& ranks = topology_.ranks(host);
    const bool with_ages = take_block(
        rest, ranks.size(), FarBoard::most_bytes(board_.ranks()), [&](std::size_t index, const RoundMessage& message) {
          board_.put(round_, ranks[index], message);
          given_ns_[static_cast<std::size_t>(ranks[index])] = received_ns - std::int64_t{message.age_us} * 1000;
        });
    // Rank 0's host asks for ages with its own ones.
    if (host == topology_.host_of(0)) group_.header().notes_times.store(with_ages ? 1 : 0, std::memory_order_relaxed);
    aged_ns_.push_back(received_ns);
    for (const int rank : ranks) board_.given(rank).store(round_, std::memory_order_release);
    ends_.push_back(blocks_.size() + bytes.size() - rest.size());
  }
  if (!rest.empty()) throw Error(Errc::kProtocol, "a host has sent more blocks than it should");
  if (step_ + 1 < way_.steps()) blocks_ += bytes;
}

void LeaderExchange::on_frame(int host, const Frame& frame) {
  switch (frame.type) {
    case Type::kBlocks:
      return on_blocks(host, frame);
    case Type::kBegun:
      return note_begun(frame.round);
    case Type::kAsk:
      on_present(host, frame);
      note_begun(frame.round);
      return links_.send(host, {Type::kPresent, frame.round, present(frame.round)});
    case Type::kPresent:
      return on_present(host, frame);
    case Type::kLeft:
      return on_left(frame);
  }
  throw Error(Errc::kProtocol, "a host has sent something unknown");
}

void LeaderExchange::on_blocks(int host, const Frame& frame) {
  note_begun(frame.round);
  if (is_awaited(host, frame.round)) {
    take_step(frame.payload, now_ns());
  } else {
    early_[static_cast<std::size_t>(host)].push_back({frame.round, std::string(frame.payload), now_ns()});
  }
}

void LeaderExchange::note_begun(std::uint64_t round) {
  if (round <= board_.begun().load(std::memory_order_relaxed)) return;
  board_.begun().store(round, std::memory_order_seq_cst);
  group_.announce_round();
}

void LeaderExchange::on_present(int host, const Frame& frame) {
  const std::vector<int>& ranks = topology_.ranks(host);
  if (frame.payload.size() != ranks.size()) throw Error(Errc::kProtocol, "a host has sent something malformed");
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    Step& given = board_.given(ranks[i]);
    if (frame.payload[i] != 0 && given.load(std::memory_order_relaxed) < frame.round) given.store(frame.round);
  }
}

/// A byte for each rank of this host.
std::string LeaderExchange::present(std::uint64_t round) const {
  std::string bytes;
  for (const int rank : topology_.ranks(topology_.host()))
    bytes += board_.given(rank).load(std::memory_order_acquire) >= round ? '\1' : '\0';
  return bytes;
}

void LeaderExchange::on_left(const Frame& frame) {
  std::int32_t rank = -1;
  if (frame.payload.size() == sizeof rank) std::memcpy(&rank, frame.payload.data(), sizeof rank);
  if (rank < 0 || rank >= topology_.size()) throw Error(Errc::kProtocol, "a host has sent something malformed");
  if (board_.left_after(rank).load(std::memory_order_relaxed) != 0) return;
  board_.left_after(rank).store(1 + frame.round, std::memory_order_seq_cst);
  board_.departures().fetch_add(1, std::memory_order_seq_cst);
  group_.ring_at(group_.rank());
  group_.ring_next_round();
}

void LeaderExchange::on_end(int host) {
  if (has_leader_left(host)) return;
  if (!links_.refusal(host).empty())
    throw Error(Errc::kAuth, fmt::format("rank {} at {}", leader_name(host), links_.refusal(host)));
  const int error = links_.error(host);
  if (error == 0)
    throw Error(
        Errc::kConnect,
        fmt::format("the connection to rank {} has ended: its process has, or the network failed", leader_name(host)));
  lost_rank_ = leader_name(host);
  throw Error(Errc::kConnect,
              fmt::format("the connection to rank {} has failed: {}", leader_name(host), ::strerror(error)));
}

bool LeaderExchange::has_leader_left(int host) const {
  return board_.left_after(topology_.ranks(host).front()).load(std::memory_order_relaxed) != 0;
}

/// The rank of a host's leader in the job.
int LeaderExchange::leader_name(int host) const {
  const int leader = topology_.ranks(host).front();
  return names_.empty() ? leader : names_.at(static_cast<std::size_t>(leader));
}

void LeaderExchange::fail(const Error& error) {
  if (failure_.ok()) failure_ = Status(error);
}

}  // namespace runjob::runtime
