#include "launcher/step/step_head.hpp"

#include <algorithm>
#include <charconv>
#include <exception>
#include <optional>
#include <set>
#include <thread>
#include <utility>
#include <vector>

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ip/v6_only.hpp>
#include <boost/asio/read_until.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>
#include <fmt/format.h>

#include "base/error.hpp"
#include "base/log.hpp"
#include "base/one_line.hpp"
#include "launcher/messages.hpp"
#include "launcher/rank_environment.hpp"
#include "launcher/rank_place.hpp"
#include "launcher/step/step_messages.hpp"
#include "launcher/step/step_roll.hpp"
#include "launcher/verdict.hpp"
#include "rendezvous/http_server.hpp"
#include "rendezvous/service.hpp"

namespace runjob {
namespace {

namespace asio = boost::asio;
using asio::ip::tcp;
using rendezvous::Service;
using namespace std::chrono_literals;

constexpr auto kHelloLimit = 10s;
constexpr auto kCulpritPatience = 4s;
constexpr auto kLostAfter = 4 * kStepPoll;
constexpr std::size_t kMostStrangers = 64;
constexpr int kMostWarnings = 10;
constexpr std::size_t kShownReasonBytes = 400;

/// Of a coroutine of ours: what it could not handle.
void report(const std::exception_ptr& failure) {
  try {
    if (failure) std::rethrow_exception(failure);
  } catch (const std::exception& error) {
    log::error("task 0 of the step: {}", one_line(error.what()));
  }
}

/// IPv4 addresses as such, also on a socket for both kinds.
std::string text_of(const asio::ip::address& address) {
  if (address.is_v6() && address.to_v6().is_v4_mapped())
    return asio::ip::make_address_v4(asio::ip::v4_mapped, address.to_v6()).to_string();
  return address.to_string();
}

/// Listens on every address, of both kinds where there are both.
tcp::acceptor listen_anywhere(asio::io_context& context, const SlurmTask& task) {
  boost::system::error_code error;
  for (const int port : step_ports(task.step)) {
    for (const tcp protocol : {tcp::v6(), tcp::v4()}) {
      tcp::acceptor acceptor(context);
      acceptor.open(protocol, error);
      if (!error && protocol == tcp::v6()) acceptor.set_option(asio::ip::v6_only(false), error);
      if (!error) acceptor.set_option(tcp::acceptor::reuse_address(true), error);
      if (!error) acceptor.bind({protocol, static_cast<unsigned short>(port)}, error);
      if (!error) acceptor.listen(asio::socket_base::max_listen_connections, error);
      if (!error) return acceptor;
    }
  }
  throw Error(Errc::kSystem, fmt::format("no port of step {} is free on {}: {}; start it again", task.step,
                                         task.node_name, error.message()));
}

}  // namespace

class StepHead::State {
 public:
  State(Options options, Munge munge)
      : options_(std::move(options)),
        munge_(munge),
        acceptor_(listen_anywhere(context_, options_.task)),
        roll_(options_.task.step, options_.task.size),
        key_(rendezvous::JobKey::random()),
        roll_timer_(context_),
        rendezvous_timer_(context_),
        start_timer_(context_),
        culprit_timer_(context_),
        lost_timer_(context_) {
    asio::co_spawn(context_, accept(), report);
    roll_timer_.expires_after(options_.start_timeout);
    roll_timer_.async_wait([this](boost::system::error_code error) {
      if (!error) refuse_all();
    });
    thread_ = std::thread([this] { context_.run(); });
  }

  ~State() {
    context_.stop();
    if (thread_.joinable()) thread_.join();
  }

  int wait() {
    thread_.join();
    return status_;
  }

 private:
  struct Waiting {
    tcp::socket socket;
    StepHello hello;
  };

  asio::awaitable<void> accept() {
    for (;;) {
      auto [error, socket] = co_await acceptor_.async_accept(asio::as_tuple(asio::use_awaitable));
      if (error == asio::error::operation_aborted) co_return;
      if (error) {  // such as too many open files
        asio::steady_timer pause(context_, 100ms);
        co_await pause.async_wait(asio::as_tuple(asio::use_awaitable));
        continue;
      }
      if (strangers_ == kMostStrangers + static_cast<std::size_t>(options_.task.size)) continue;
      asio::co_spawn(context_, receive(std::move(socket)), report);
    }
  }

  asio::awaitable<void> receive(tcp::socket socket) {
    ++strangers_;
    const auto peer = socket.remote_endpoint(ignored_);
    const auto own = socket.local_endpoint(ignored_);
    asio::steady_timer limit(context_, kHelloLimit);
    limit.async_wait([&socket](boost::system::error_code error) {
      if (!error) socket.cancel(error);
    });
    std::string line;
    boost::system::error_code error;
    std::tie(error, std::ignore) = co_await asio::async_write(
        socket, asio::buffer(kStepGreeting.data(), kStepGreeting.size()), asio::as_tuple(asio::use_awaitable));
    if (!error)
      std::tie(error, std::ignore) = co_await asio::async_read_until(
          socket, asio::dynamic_buffer(line, kMaxStepLineBytes), '\n', asio::as_tuple(asio::use_awaitable));
    limit.cancel();
    --strangers_;
    if (error) co_return;
    line.resize(line.find('\n'));
    try {
      StepHello hello = parse_step_hello(munge_.open(line));
      roll_.add(hello, text_of(peer.address()), text_of(own.address()));
      waiting_.push_back({std::move(socket), std::move(hello)});
    } catch (const Error& failure) {
      if (++warnings_ <= kMostWarnings)
        log::warn("refused a connection from {}: {}", text_of(peer.address()), one_line(failure.what()));
      co_return;
    }
    if (roll_.complete()) begin();
  }

  /// All tasks are there: they get what they need, and the rendezvous opens.
  void begin() {
    roll_timer_.cancel();
    acceptor_.close(ignored_);
    const Allocation allocation = roll_.allocation();
    topology_ = rendezvous::to_json(topology_of(allocation));
    std::vector<rendezvous::Member> members;
    for (const Placement& placement : allocation.placements)
      members.push_back({allocation.hosts.at(static_cast<std::size_t>(placement.host)).name});
    allocation_ = allocation;
    verdict_.emplace(allocation, options_.command, options_.continue_on_failure);
    service_.emplace(std::move(members), options_.start_timeout, [this](int rank) {
      const Placement& placement = allocation_.placements.at(static_cast<std::size_t>(rank));
      return rendezvous::join_reply(rank_place(allocation_, placement, options_.start_timeout), topology_);
    });
    service_->on_failing([this](int rank, const rendezvous::Failing& failing) {
      verdict_->rank_failing(rank, failing.own, one_line(failing.reason.substr(0, kShownReasonBytes)));
      watch_culprit();
    });
    rendezvous::HttpServer::Limits limits;
    limits.connections = 64 + 4 * static_cast<std::size_t>(options_.task.size);
    listen(limits);
    seen_.assign(allocation.placements.size(), std::chrono::steady_clock::now());
    welcome_all();
    watch_lost();
  }

  void listen(const rendezvous::HttpServer::Limits& limits) {
    const auto handler = [this](rendezvous::Request request, rendezvous::Reply reply) {
      on_request(std::move(request), std::move(reply));
    };
    try {
      server_.emplace(context_.get_executor(), rendezvous::HttpServer::TcpAddress{"::", 0}, key_, handler, limits);
    } catch (const Error&) {  // no IPv6 here
      server_.emplace(context_.get_executor(), rendezvous::HttpServer::TcpAddress{"0.0.0.0", 0}, key_, handler, limits);
    }
  }

  void welcome_all() {
    const std::string master = roll_.address_of(0);
    const JobVariables job{options_.task.step, 0, master.empty() ? "127.0.0.1" : master, roll_.free_port()};
    for (Waiting& each : std::exchange(waiting_, {})) {
      const Placement& placement = allocation_.placements.at(static_cast<std::size_t>(each.hello.rank));
      const StepWelcome welcome{each.hello.nonce, server_->port(), key_, roll_.address_of(each.hello.rank),
                                rank_variables(allocation_, placement, job)};
      answer(std::move(each.socket), encode(welcome));
    }
  }

  void refuse_all() {
    const std::string reason = fmt::format(
        "tasks {} of step {} have not come within the {} s of --start-timeout; squeue and their nodes' logs may say "
        "why",
        roll_.missing(), options_.task.step, std::chrono::duration<double>(options_.start_timeout).count());
    status_ = kOwnFailure;
    acceptor_.close(ignored_);
    for (Waiting& each : std::exchange(waiting_, {}))
      answer(std::move(each.socket), encode_refusal(each.hello.nonce, reason));
  }

  void answer(tcp::socket socket, const std::string& text) {
    std::string line;
    try {
      line = munge_.seal(text) + '\n';
    } catch (const Error& error) {
      log::error("{}", one_line(error.what()));
      return;
    }
    asio::co_spawn(context_, send(std::move(socket), std::move(line)), report);
  }

  static asio::awaitable<void> send(tcp::socket socket, std::string line) {
    co_await asio::async_write(socket, asio::buffer(line), asio::as_tuple(asio::use_awaitable));
  }

  void on_request(rendezvous::Request request, rendezvous::Reply reply) {
    const auto now = std::chrono::steady_clock::now();
    const int rank = request.rank;
    const bool of_a_rank = rank >= 0 && rank < options_.task.size;
    if (of_a_rank) seen_[static_cast<std::size_t>(rank)] = now;
    const std::string reports = fmt::format("/v1/kv/{}/", kStepScope);
    if (of_a_rank && request.method == "PUT" && request.target.starts_with(reports)) {
      reply({200, "", {}});
      return on_report(rank, request.target.substr(reports.size()), request.body);
    }
    if (request.target == "/v1/join" && !std::exchange(any_joined_, true)) watch_start(now);
    if (request.target == "/v1/join" && of_a_rank) verdict_->rank_joined(rank);
    service_->handle(std::move(request), now, std::move(reply));
    watch_rendezvous();
  }

  void on_report(int rank, const std::string& what, const std::string& body) try {
    if (what == kStepStarted) {
      const std::int64_t pid = decode<Started>(body).pid;
      verdict_->rank_started(rank, pid);
      service_->rank_started(rank, pid, std::chrono::steady_clock::now());
    } else if (what == kStepNotStarted) {
      verdict_->rank_not_started(rank, decode<StartFailed>(body));
      on_rank_gone(rank);
    } else if (what == kStepExited) {
      verdict_->rank_exited(rank, decode<Exited>(body));
      on_rank_gone(rank);
    } else if (what == kStepInterrupted) {
      int number = 0;
      std::from_chars(body.data(), body.data() + body.size(), number);
      if (number > 0) verdict_->interrupted(number);
    }
    end_if_caused();
  } catch (const Error& error) {
    log::warn("task {} reports what makes no sense: {}", rank, one_line(error.what()));
  }

  void on_rank_gone(int rank) {
    ended_.insert(rank);
    service_->rank_exited(rank, verdict_->how(rank), std::chrono::steady_clock::now());
    watch_culprit();
    if (any_joined_) check_start();
    if (static_cast<int>(ended_.size()) == options_.task.size) conclude();
  }

  void watch_rendezvous() {
    const auto deadline = service_->next_deadline();
    if (deadline == Service::TimePoint::max()) return static_cast<void>(rendezvous_timer_.cancel());
    rendezvous_timer_.expires_at(deadline);
    rendezvous_timer_.async_wait([this](boost::system::error_code error) {
      if (error) return;
      service_->expire(std::chrono::steady_clock::now());
      watch_rendezvous();
    });
  }

  void watch_start(Service::TimePoint joined) {
    start_timer_.expires_at(joined + options_.start_timeout);
    start_timer_.async_wait([this](boost::system::error_code error) {
      if (!error) check_start();
    });
  }

  void check_start() {
    if (options_.continue_on_failure) return;
    const std::string missing = service_->overdue(std::chrono::steady_clock::now());
    if (missing.empty()) return;
    verdict_->start_timeout(missing);
    end_if_caused();
  }

  /// As Job::watch_culprit().
  void watch_culprit() {
    if (!verdict_->unsettled() || std::exchange(culprit_awaited_, true)) return;
    culprit_timer_.expires_after(kCulpritPatience);
    culprit_timer_.async_wait([this](boost::system::error_code error) {
      if (error) return;
      culprit_awaited_ = false;
      verdict_->settle();
      end_if_caused();
    });
  }

  void watch_lost() {
    lost_timer_.expires_after(kStepPoll);
    lost_timer_.async_wait([this, due = lost_timer_.expiry()](boost::system::error_code error) {
      if (error) return;
      const auto now = std::chrono::steady_clock::now();
      if (now - due > kStepPoll) seen_.assign(seen_.size(), now);  // SLURM had suspended the step
      for (int rank = 0; rank < options_.task.size; ++rank) {
        if (ended_.contains(rank) || now - seen_[static_cast<std::size_t>(rank)] < kLostAfter) continue;
        verdict_->host_lost(
            allocation_.placements[static_cast<std::size_t>(rank)].host,
            fmt::format("task {} has not been heard of for {} s", rank, std::chrono::seconds(kLostAfter).count()));
        on_rank_gone(rank);
      }
      end_if_caused();
      watch_lost();
    });
  }

  void end_if_caused() {
    if (!verdict_->ends_job() || std::exchange(ending_, true)) return;
    rendezvous::Request request;
    request.method = "PUT";
    request.target = fmt::format("/v1/kv/{}/{}", kStepScope, kStepEnd);
    request.body = encode(StepEnd{verdict_->exit_status(), options_.grace_period.count()});
    service_->handle(std::move(request), std::chrono::steady_clock::now(), [](const rendezvous::Response&) {});
  }

  void conclude() {
    verdict_->settle();
    status_ = verdict_->exit_status();
    const std::string message = verdict_->message([](int) { return std::vector<std::string>(); });
    if (!message.empty()) log::error("{}", message);
    for (asio::steady_timer* timer : {&rendezvous_timer_, &start_timer_, &culprit_timer_, &lost_timer_})
      timer->cancel();
    asio::co_spawn(context_, leave(), report);
  }

  /// The answers to the last reports still go out.
  asio::awaitable<void> leave() {
    asio::steady_timer pause(context_, 50ms);
    co_await pause.async_wait(asio::as_tuple(asio::use_awaitable));
    context_.stop();
  }

  static constexpr int kOwnFailure = 125;  // docs/exit-status.md

  const Options options_;
  const Munge munge_;
  asio::io_context context_;
  tcp::acceptor acceptor_;
  std::size_t strangers_ = 0;
  int warnings_ = 0;
  StepRoll roll_;
  std::vector<Waiting> waiting_;
  const rendezvous::JobKey key_;
  Allocation allocation_;
  std::string topology_;
  std::optional<Verdict> verdict_;
  std::optional<Service> service_;
  std::optional<rendezvous::HttpServer> server_;
  std::vector<std::chrono::steady_clock::time_point> seen_;  // of each rank, when it last asked for anything
  std::set<int> ended_;
  bool any_joined_ = false;
  bool culprit_awaited_ = false;
  bool ending_ = false;
  int status_ = 0;
  asio::steady_timer roll_timer_;
  asio::steady_timer rendezvous_timer_;
  asio::steady_timer start_timer_;
  asio::steady_timer culprit_timer_;
  asio::steady_timer lost_timer_;
  boost::system::error_code ignored_;
  std::thread thread_;
};

StepHead::StepHead(Options options, Munge munge) : state_(std::make_unique<State>(std::move(options), munge)) {}

StepHead::~StepHead() = default;

int StepHead::wait() {
  return state_->wait();
}

}  // namespace runjob
