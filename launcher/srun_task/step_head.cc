#include "launcher/srun_task/step_head.hpp"

#include <charconv>
#include <exception>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <fmt/format.h>

#include "base/error.hpp"
#include "base/log.hpp"
#include "base/screen_text.hpp"
#include "launcher/channel/messages.hpp"
#include "launcher/processes/rank_environment.hpp"
#include "launcher/srun_task/step_gathering.hpp"
#include "launcher/srun_task/step_liveness.hpp"
#include "launcher/srun_task/step_messages.hpp"
#include "launcher/supervision/core_notices.hpp"
#include "launcher/supervision/outcome_report.hpp"
#include "launcher/supervision/rank_place.hpp"
#include "launcher/supervision/rank_supervisor.hpp"
#include "rendezvous/server/http_server.hpp"

namespace runjob {
namespace {

namespace asio = boost::asio;
using namespace std::chrono_literals;

constexpr int kOwnFailure = 125;  // docs/exit-status.md

StepLiveness::TimePoint now() {
  return StepLiveness::TimePoint::clock::now();
}

}  // namespace

class StepHead::State {
 public:
  State(Options options, Munge munge, StepNames* names)
      : options_(std::move(options)),
        gathering_(context_, options_.task, munge, names, options_.start_timeout,
                   [this](bool complete) { begin(complete); }),
        key_(rendezvous::JobKey::random()),
        lost_timer_(context_),
        thread_([this] { context_.run(); }) {}

  ~State() {
    context_.stop();
    if (thread_.joinable()) thread_.join();
  }

  int wait() {
    thread_.join();
    return status_;
  }

 private:
  /// All tasks have come, or their time is up and they have been refused. In the first case each gets its welcome, and
  /// the rendezvous opens; in the second one the loop has nothing more to do and ends.
  void begin(bool complete) {
    if (!complete) return static_cast<void>(status_ = kOwnFailure);
    allocation_ = gathering_.roll().allocation();
    topology_ = rendezvous::to_json(topology_of(allocation_));
    const auto placement = [this](int rank) {
      return rendezvous::join_reply(rank_place(allocation_, place_of(rank), options_.start_timeout), topology_);
    };
    supervisor_.emplace(
        allocation_,
        RankSupervisor::Options{options_.command, options_.start_timeout, options_.continue_on_failure, placement},
        make_alarm(context_.get_executor()), [this](const Verdict& verdict) { end_ranks(verdict); });
    liveness_.emplace(options_.task.size, now());
    listen();
    welcome_all();
    watch_lost();
  }

  void listen() {
    rendezvous::HttpServer::Limits limits;
    limits.connections = 64 + 4 * static_cast<std::size_t>(options_.task.size);
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
    const StepRoll& roll = gathering_.roll();
    const std::string master = roll.address_of(0);
    const JobVariables job{options_.task.step, 0, 0, master.empty() ? "127.0.0.1" : master, roll.free_port()};
    gathering_.welcome_all([&](const StepHello& hello) {
      return StepWelcome{hello.nonce, server_->port(), key_, roll.address_of(hello.rank),
                         rank_variables(allocation_, place_of(hello.rank), job)};
    });
  }

  void on_request(rendezvous::Request request, rendezvous::Reply reply) {
    const int rank = request.process;
    const bool is_rank = rank >= 0 && rank < options_.task.size;
    liveness_->seen(rank, now());
    const std::string reports = fmt::format("/v1/kv/{}/", kStepScope);
    if (is_rank && request.method == "PUT" && request.target.starts_with(reports)) {
      reply({200, "", {}});
      return on_report(rank, request.target.substr(reports.size()), request.body);
    }
    any_joined_ = any_joined_ || request.target == "/v1/join";
    supervisor_->request(std::move(request), std::move(reply));
  }

  void on_report(int rank, const std::string& what, const std::string& body) try {
    if (what == kStepStarted) {
      supervisor_->started(rank, decode<Started>(body));
    } else if (what == kStepNotStarted) {
      supervisor_->not_started(rank, decode<StartFailed>(body));
      on_rank_gone(rank);
    } else if (what == kStepExited) {
      supervisor_->exited(rank, decode<Exited>(body));
      on_rank_gone(rank);
    } else if (what == kStepInterrupted) {
      int number = 0;
      std::from_chars(body.data(), body.data() + body.size(), number);
      if (number > 0) supervisor_->verdict().interrupted(number);
    }
    supervisor_->end_if_caused();
  } catch (const Error& error) {
    log::warn("refused a report of task {}: {}", rank, one_line(error.what()));
  }

  void on_rank_gone(int rank) {
    liveness_->ended(rank);
    if (liveness_->all_ended()) conclude();
  }

  void watch_lost() {
    lost_timer_.expires_after(kStepPoll);
    lost_timer_.async_wait([this](boost::system::error_code error) {
      if (error) return;
      for (const int rank : liveness_->lost(now())) {
        supervisor_->host_lost(place_of(rank).host,
                               fmt::format("task {} has sent nothing for {} s", rank, kLostAfter.count()));
        on_rank_gone(rank);
      }
      supervisor_->end_if_caused();
      watch_lost();
    });
  }

  /// The tasks wait for this value, see EndWatch in run_task.cc.
  void end_ranks(const Verdict& verdict) {
    rendezvous::Request request;
    request.method = "PUT";
    request.target = fmt::format("/v1/kv/{}/{}", kStepScope, kStepEnd);
    request.body = encode(StepEnd{verdict.outcome().exit_status(), options_.grace_period.count()});
    supervisor_->request(std::move(request), [](const rendezvous::Response&) {});
  }

  void conclude() {
    Verdict& verdict = supervisor_->verdict();
    verdict.settle();
    status_ = verdict.outcome().exit_status();
    const std::string message = outcome_message(verdict.outcome(), [](int) { return std::vector<std::string>(); });
    if (!message.empty()) log::error("{}", message);
    if (const std::string notice = idle_options_notice(options_.runtime_options);
        !any_joined_ && status_ == 0 && !notice.empty())
      log::warn("{}", notice);
    asio::co_spawn(context_, leave(), [](const std::exception_ptr&) {});
  }

  /// Lets the answers to the last reports go out first.
  asio::awaitable<void> leave() {
    asio::steady_timer pause(context_, 50ms);
    co_await pause.async_wait(asio::as_tuple(asio::use_awaitable));
    context_.stop();
  }

  const Placement& place_of(int rank) const { return allocation_.placements.at(static_cast<std::size_t>(rank)); }

  const Options options_;
  asio::io_context context_;
  StepGathering gathering_;
  const rendezvous::JobKey key_;
  Allocation allocation_;
  std::string topology_;
  std::optional<RankSupervisor> supervisor_;  // these three exist once all tasks have come
  std::optional<StepLiveness> liveness_;
  std::optional<rendezvous::HttpServer> server_;
  int status_ = 0;
  bool any_joined_ = false;
  asio::steady_timer lost_timer_;
  std::thread thread_;  // the last member: it uses the others
};

StepHead::StepHead(Options options, Munge munge, StepNames* names)
    : state_(std::make_unique<State>(std::move(options), munge, names)) {}

StepHead::~StepHead() = default;

int StepHead::wait() {
  return state_->wait();
}

}  // namespace runjob
