#include "runtime/collectives/hierarchical/rounds/leader_exchange.hpp"

#include <algorithm>
#include <cstring>
#include <limits>
#include <sys/epoll.h>

#include <fmt/format.h>

#include "runtime/collectives/hierarchical/rounds/epoll.hpp"

namespace runjob::runtime {
namespace {

int milliseconds_until(LeaderExchange::Clock::time_point deadline) {
  if (deadline == LeaderExchange::Clock::time_point::max()) return -1;
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - LeaderExchange::Clock::now()).count();
  return static_cast<int>(std::clamp<std::int64_t>(left, 0, std::numeric_limits<int>::max()));
}

}  // namespace

LeaderExchange::LeaderExchange(const Topology& topology, Group& group, const FarBoard& board,
                               std::vector<ControlChannel> channels, std::chrono::microseconds spin)
    : topology_(topology),
      attendance_(topology, group, board),
      links_(std::move(channels)),
      blocks_(topology, group, board, links_),
      spin_(spin),
      driver_poll_(epoll_of_inputs({links_.descriptor(), wake_driver_.get()})),
      receiver_(links_.descriptor(), [this] {
        receive_all();
        if (receiver_.is_driver_inside()) interrupt();  // it may have looked just before
      }) {}

LeaderExchange::~LeaderExchange() = default;

std::string LeaderExchange::begin(LentBlock block) {
  const MutexLock lock(mutex_);
  failure_.throw_if_failed();
  std::string memory;
  try {
    memory = blocks_.begin(std::move(block));
  } catch (const Error& error) {
    fail(error);
    throw;
  }
  ++own_round_;  // last: a round that has not begun is not complete
  return memory;
}

bool LeaderExchange::advance() {
  has_advanced();
  const MutexLock lock(mutex_);
  if (blocks_.is_complete()) return true;
  failure_.throw_if_failed();
  return false;
}

/// Reads from the one host whose message is awaited. True when advance() has something to do.
bool LeaderExchange::has_advanced() {
  const MutexLock lock(mutex_);
  if (blocks_.is_complete() || !failure_.ok()) return true;
  const int step = blocks_.step(), source = blocks_.source();
  guarded([&](const auto& on_frame, const auto& on_end) { links_.receive_from(source, on_frame, on_end); });
  return blocks_.step() != step || !failure_.ok();
}

std::span<const std::byte> LeaderExchange::message(int rank) const {
  const MutexLock lock(mutex_);
  return blocks_.message(rank);
}

std::int64_t LeaderExchange::given_at(int rank) const {
  const MutexLock lock(mutex_);
  return blocks_.given_at(rank);
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

/// A host that is out of reach fails the exchange. Its silence alone could be that of a long computation.
void LeaderExchange::look_for_silence(Clock::time_point now) {
  if (now < next_look_) return;
  next_look_ = now + SilenceWatch::kLookEvery;
  const MutexLock lock(mutex_);
  links_.find_silent(now, [this](int host, const std::string& reason) {
    if (attendance_.has_leader_left(host)) return;
    lost_rank_ = leader_name(host);
    fail(Error(Errc::kConnect, fmt::format("rank {}: {}", leader_name(host), reason)));
  });
}

void LeaderExchange::announce_begun() {
  const MutexLock lock(mutex_);
  for (int host = 0; host < topology_.hosts(); ++host) {
    if (host != blocks_.first_target()) links_.send(host, {Type::kBegun, blocks_.round(), {}});
  }
}

void LeaderExchange::ask(std::uint64_t round) {
  const MutexLock lock(mutex_);
  links_.send_to_all({Type::kAsk, round, attendance_.state_here(round)});
}

void LeaderExchange::announce_left(int rank, std::uint64_t round) {
  const auto number = static_cast<std::int32_t>(rank);
  const MutexLock lock(mutex_);
  if (!announced_left_.insert(rank).second) return;
  if (rank == topology_.rank()) round = blocks_.round();  // no host gets a message that it has given and not sent
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
  return {links_.messages_sent(), links_.bytes_sent(), links_.has_unacknowledged()};
}

void LeaderExchange::receive_all() {
  const MutexLock lock(mutex_);
  guarded([this](const auto& on_frame, const auto& on_end) { links_.receive(on_frame, on_end); });
}

/// Receives with `receive`, and goes on with the round. The driver's next call throws the error of a failure.
template <class Receive>
void LeaderExchange::guarded(Receive receive) {
  try {
    receive([this](int host, const Frame& frame) { on_frame(host, frame); }, [this](int host) { on_end(host); });
    if (failure_.ok()) blocks_.advance();
  } catch (const Error& error) {
    fail(error);
  } catch (const std::exception& error) {
    fail(Error(Errc::kSystem, error.what()));
  }
}

void LeaderExchange::on_frame(int host, const Frame& frame) {
  switch (frame.type) {
    case Type::kBlocks:
      attendance_.note_begun(frame.round);
      if (failure_.ok()) blocks_.receive(host, frame.round, frame.payload);
      return;
    case Type::kBegun:
      return attendance_.note_begun(frame.round);
    case Type::kAsk:
      attendance_.note_state(host, frame.round, frame.payload);
      attendance_.note_begun(frame.round);
      return links_.send(host, {Type::kPresent, frame.round, attendance_.state_here(frame.round)});
    case Type::kPresent:
      return attendance_.note_state(host, frame.round, frame.payload);
    case Type::kLeft:
      return on_left(frame);
  }
  throw Error(Errc::kProtocol, "a host has sent a message of an unknown type");
}

void LeaderExchange::on_left(const Frame& frame) {
  std::int32_t rank = -1;
  if (frame.payload.size() == sizeof rank) std::memcpy(&rank, frame.payload.data(), sizeof rank);
  attendance_.note_left(rank, frame.round);
}

void LeaderExchange::on_end(int host) {
  if (attendance_.has_leader_left(host)) return;
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

void LeaderExchange::fail(const Error& error) {
  if (failure_.ok()) failure_ = Status(error);
}

}  // namespace runjob::runtime
