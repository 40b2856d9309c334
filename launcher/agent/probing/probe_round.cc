#include "launcher/agent/probing/probe_round.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <deque>
#include <exception>
#include <map>
#include <string_view>
#include <utility>

#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/read.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/write.hpp>

#include "launcher/channel/no_throw.hpp"

namespace runjob {
namespace {

namespace asio = boost::asio;
using asio::ip::tcp;
using boost::system::error_code;
using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

constexpr Clock::duration kLeastRest = 100ms;
constexpr int kRestFactor = 4;

/// A socket that a timer closed, during an operation or between two, has run out of time.
ProbeOutcome failed(const error_code& error) {
  const bool is_closed = error == asio::error::operation_aborted || error == asio::error::bad_descriptor;
  return {ProbeOutcome::Kind::kFailed, is_closed ? ETIMEDOUT : error.value()};
}

}  // namespace

class ProbeRound::State : public std::enable_shared_from_this<State> {
 public:
  State(asio::any_io_executor executor, const ProbeConnect& message, Done done);

  void start(std::chrono::milliseconds limit);
  void stop();

 private:
  struct Attempt {
    ProbeTarget target;
    tcp::socket socket;
    ProbeOutcome outcome = {};
  };

  asio::awaitable<ProbeOutcome> try_target(Attempt& attempt);
  void on_outcome(Attempt& attempt, const ProbeOutcome& outcome);
  void give_others_little_time(int host);
  void close_sockets(int host);
  void finish();

  asio::any_io_executor executor_;
  asio::steady_timer limit_;
  std::map<int, asio::steady_timer> rests_;  // of hosts that have been reached
  std::deque<Attempt> attempts_;
  std::size_t open_ = 0;
  const Clock::time_point began_ = Clock::now();
  Done done_;
};

ProbeRound::State::State(asio::any_io_executor executor, const ProbeConnect& message, Done done)
    : executor_(std::move(executor)), limit_(executor_), done_(std::move(done)) {
  for (const ProbeTarget& target : message.targets) attempts_.push_back({target, tcp::socket(executor_)});
}

void ProbeRound::State::start(std::chrono::milliseconds limit) {
  const auto self = shared_from_this();
  open_ = attempts_.size();
  if (open_ == 0) return asio::post(executor_, [self] { self->finish(); });
  limit_.expires_after(limit);
  limit_.async_wait([self](error_code error) {
    if (error) return;
    for (Attempt& attempt : self->attempts_) attempt.socket.close(error);
  });
  for (Attempt& attempt : attempts_) {
    asio::co_spawn(executor_, try_target(attempt),
                   [self, &attempt](const std::exception_ptr& failure, const ProbeOutcome& outcome) {
                     self->on_outcome(attempt, failure ? ProbeOutcome{ProbeOutcome::Kind::kFailed, EIO} : outcome);
                   });
  }
}

void ProbeRound::State::stop() {
  done_ = nullptr;
  limit_.cancel();
  for (auto& [host, timer] : rests_) timer.cancel();
  error_code ignored;
  for (Attempt& attempt : attempts_) attempt.socket.close(ignored);
}

asio::awaitable<ProbeOutcome> ProbeRound::State::try_target(Attempt& attempt) {
  error_code error;
  const tcp::endpoint endpoint(asio::ip::make_address(attempt.target.address, error),
                               static_cast<std::uint16_t>(attempt.target.port));
  if (error) co_return failed(error);
  const auto [connect_error] = co_await attempt.socket.async_connect(endpoint, kNoThrow);
  if (connect_error) co_return failed(connect_error);

  const asio::const_buffer question = asio::buffer(attempt.target.token.question);
  const auto [write_error, written] = co_await asio::async_write(attempt.socket, question, kNoThrow);
  static_cast<void>(written);
  if (write_error) co_return failed(write_error);

  std::array<char, ProbeToken::kBytes> received{};
  const asio::mutable_buffer room = asio::buffer(received);
  const auto [read_error, bytes] = co_await asio::async_read(attempt.socket, room, kNoThrow);
  const bool has_hung_up = read_error == asio::error::eof || read_error == asio::error::connection_reset;
  if (read_error && !has_hung_up) co_return failed(read_error);
  const bool is_answer = std::string_view(received.data(), bytes) == attempt.target.token.answer;
  co_return ProbeOutcome{is_answer ? ProbeOutcome::Kind::kReached : ProbeOutcome::Kind::kStranger, 0};
}

void ProbeRound::State::on_outcome(Attempt& attempt, const ProbeOutcome& outcome) {
  attempt.outcome = outcome;
  error_code ignored;
  attempt.socket.close(ignored);
  if (--open_ == 0) return finish();
  if (outcome.kind == ProbeOutcome::Kind::kReached) give_others_little_time(attempt.target.host);
}

void ProbeRound::State::give_others_little_time(int host) {
  const auto [entry, is_first] = rests_.try_emplace(host, executor_);
  if (!is_first) return;
  entry->second.expires_after(std::max(kLeastRest, kRestFactor * (Clock::now() - began_)));
  entry->second.async_wait([self = shared_from_this(), host](error_code error) {
    if (!error) self->close_sockets(host);
  });
}

void ProbeRound::State::close_sockets(int host) {
  error_code ignored;
  for (Attempt& attempt : attempts_) {
    if (attempt.target.host == host) attempt.socket.close(ignored);
  }
}

void ProbeRound::State::finish() {
  const Done done = std::exchange(done_, nullptr);
  stop();
  if (!done) return;
  ProbeResults results;
  for (const Attempt& attempt : attempts_) results.outcomes.push_back(attempt.outcome);
  done(results);
}

ProbeRound::ProbeRound(asio::any_io_executor executor, const ProbeConnect& message, Done done)
    : state_(std::make_shared<State>(std::move(executor), message, std::move(done))) {
  state_->start(std::chrono::milliseconds(message.limit_ms));
}

ProbeRound::~ProbeRound() {
  state_->stop();
}

}  // namespace runjob
