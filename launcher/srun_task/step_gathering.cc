#include "launcher/srun_task/step_gathering.hpp"

#include <exception>
#include <optional>
#include <string>
#include <tuple>
#include <utility>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/read_until.hpp>
#include <boost/asio/write.hpp>
#include <fmt/format.h>

#include "base/error.hpp"
#include "base/log.hpp"
#include "base/screen_text.hpp"
#include "base/secrets/secret.hpp"
#include "launcher/channel/no_throw.hpp"
#include "launcher/srun_task/port_holder.hpp"

namespace runjob {
namespace {

namespace asio = boost::asio;
using namespace std::chrono_literals;

constexpr auto kHelloLimit = 10s;
constexpr std::size_t kMostStrangers = 64;

/// For coroutines of this file: logs an error that they could not handle.
void report(const std::exception_ptr& failure) {
  try {
    if (failure) std::rethrow_exception(failure);
  } catch (const std::exception& error) {
    log::error("task 0 of the step: {}", one_line(error.what()));
  }
}

/// Listens on a port that the other tasks find: any one if SLURM tells it to them, else one of step_ports().
StreamAcceptor listen_where_expected(asio::io_context& context, const SlurmTask& task, StepNames* names) {
  boost::system::error_code error;
  if (names) {
    StreamAcceptor anywhere = listen_everywhere(context.get_executor(), 0, error);
    if (!error && names->publish(kStepPortName, std::to_string(port_of(anywhere)))) return anywhere;
  }
  const std::vector<int> ports = step_ports(task);
  for (const int port : ports) {
    StreamAcceptor acceptor = listen_everywhere(context.get_executor(), port, error);
    if (!error) return acceptor;
  }
  const std::optional<uid_t> holder = port_holder(ports.front());
  const std::string who = holder ? fmt::format(", and user {} listens on port {}", *holder, ports.front()) : "";
  throw Error(Errc::kSystem,
              fmt::format("none of the {} ports of step {} is free on {}: {}{}; start it again, or let SLURM reserve "
                          "ports with srun --resv-ports",
                          ports.size(), task.step, task.node_name, error.message(), who));
}

asio::awaitable<void> send(StreamSocket socket, std::string line) {
  const asio::const_buffer bytes = asio::buffer(line);
  co_await asio::async_write(socket, bytes, kNoThrow);
}

}  // namespace

StepGathering::StepGathering(asio::io_context& context, const SlurmTask& task, Munge munge, StepNames* names,
                             std::chrono::milliseconds timeout, Done done)
    : context_(context),
      task_(task),
      munge_(munge),
      timeout_(timeout),
      done_(std::move(done)),
      timer_(context, timeout),
      roll_(task.step, task.size),
      listener_(context.get_executor(), {kMostStrangers + static_cast<std::size_t>(task.size), kHelloLimit},
                [this](StreamSocket socket, const std::string&) { return receive(std::move(socket)); }) {
  StreamAcceptor acceptor = listen_where_expected(context, task, names);
  port_ = port_of(acceptor);
  listener_.accept_from(std::move(acceptor));
  timer_.async_wait([this](boost::system::error_code error) {
    if (!error) refuse_all();
  });
}

asio::awaitable<void> StepGathering::receive(StreamSocket socket) {
  boost::system::error_code error;
  const std::string from = ip_address_text(socket.remote_endpoint(error));  // "" once the other side has left
  const std::string at = ip_address_text(socket.local_endpoint(error));
  const asio::const_buffer greeting = asio::buffer(kStepGreeting.data(), kStepGreeting.size());
  std::tie(error, std::ignore) = co_await asio::async_write(socket, greeting, kNoThrow);
  if (error) co_return;
  std::string line;
  auto room = asio::dynamic_buffer(line, kMaxStepHelloBytes);
  std::tie(error, std::ignore) = co_await asio::async_read_until(socket, room, '\n', kNoThrow);
  if (error) co_return;
  line.resize(line.find('\n'));
  add(std::move(socket), line, from, at);
}

void StepGathering::add(StreamSocket socket, const std::string& line, const std::string& from, const std::string& at) {
  StepHello hello = parse_step_hello(munge_.open(line));
  if (hello.called != port_)
    throw Error(Errc::kAuth,
                fmt::format("the hello of task {} was for port {}: somebody passes it on", hello.rank, hello.called));
  roll_.add(hello, from, at);
  waiting_.push_back({std::move(socket), std::move(hello)});
  if (!roll_.complete()) return;
  timer_.cancel();
  listener_.stop();
  done_(true);
}

void StepGathering::welcome_all(const std::function<StepWelcome(const StepHello& hello)>& welcome) {
  for (Waiting& each : std::exchange(waiting_, {})) answer(std::move(each.socket), encode(welcome(each.hello)));
}

void StepGathering::refuse_all() {
  const std::string reason = fmt::format(
      "tasks {} of step {} have not come within the {} s of --start-timeout; squeue and their nodes' logs may say "
      "why",
      roll_.missing(), task_.step, std::chrono::duration<double>(timeout_).count());
  listener_.stop();
  for (Waiting& each : std::exchange(waiting_, {}))
    answer(std::move(each.socket), encode_refusal(each.hello.nonce, reason));
  done_(false);
}

void StepGathering::answer(StreamSocket socket, std::string text) {
  std::string line;
  try {
    line = munge_.seal(text) + '\n';
  } catch (const Error& error) {
    log::error("{}", one_line(error.what()));
  }
  wipe(text);  // it may have the job's key
  if (line.empty()) return;
  asio::co_spawn(context_, send(std::move(socket), std::move(line)), report);
}

}  // namespace runjob
