#include "launcher/srun_task/step_gathering.hpp"

#include <exception>
#include <optional>
#include <string>
#include <tuple>
#include <utility>

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/ip/v6_only.hpp>
#include <boost/asio/read_until.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>
#include <fmt/format.h>

#include "base/error.hpp"
#include "base/log.hpp"
#include "base/screen_text.hpp"
#include "base/secrets/secret.hpp"
#include "launcher/srun_task/port_holder.hpp"

namespace runjob {
namespace {

namespace asio = boost::asio;
using asio::ip::tcp;
using namespace std::chrono_literals;

constexpr auto kHelloLimit = 10s;
constexpr std::size_t kMostStrangers = 64;
constexpr int kMostWarnings = 10;

/// For coroutines of this file: logs an error that they could not handle.
void report(const std::exception_ptr& failure) {
  try {
    if (failure) std::rethrow_exception(failure);
  } catch (const std::exception& error) {
    log::error("task 0 of the step: {}", one_line(error.what()));
  }
}

/// An IPv4 address is written as one also if it came through a socket for both kinds.
std::string text_of(const asio::ip::address& address) {
  if (address.is_v6() && address.to_v6().is_v4_mapped())
    return asio::ip::make_address_v4(asio::ip::v4_mapped, address.to_v6()).to_string();
  return address.to_string();
}

/// Listens on every address, of both kinds where there are both.
std::optional<tcp::acceptor> listen_on(asio::io_context& context, int port, boost::system::error_code& error) {
  for (const tcp protocol : {tcp::v6(), tcp::v4()}) {
    tcp::acceptor acceptor(context);
    acceptor.open(protocol, error);
    if (!error && protocol == tcp::v6()) acceptor.set_option(asio::ip::v6_only(false), error);
    if (!error) acceptor.bind({protocol, static_cast<unsigned short>(port)}, error);
    if (!error) acceptor.listen(asio::socket_base::max_listen_connections, error);
    if (!error) return acceptor;
  }
  return std::nullopt;
}

/// Listens on a port that the other tasks find: any one if SLURM tells it to them, else one of step_ports().
tcp::acceptor listen_where_expected(asio::io_context& context, const SlurmTask& task, StepNames* names) {
  boost::system::error_code error;
  if (names) {
    std::optional<tcp::acceptor> anywhere = listen_on(context, 0, error);
    if (anywhere && names->publish(kStepPortName, std::to_string(anywhere->local_endpoint().port())))
      return std::move(*anywhere);
  }
  const std::vector<int> ports = step_ports(task);
  for (const int port : ports) {
    if (std::optional<tcp::acceptor> acceptor = listen_on(context, port, error)) return std::move(*acceptor);
  }
  const std::optional<uid_t> holder = port_holder(ports.front());
  const std::string who = holder ? fmt::format(", and user {} listens on port {}", *holder, ports.front()) : "";
  throw Error(Errc::kSystem,
              fmt::format("none of the {} ports of step {} is free on {}: {}{}; start it again, or let SLURM reserve "
                          "ports with srun --resv-ports",
                          ports.size(), task.step, task.node_name, error.message(), who));
}

asio::awaitable<void> send(tcp::socket socket, std::string line) {
  co_await asio::async_write(socket, asio::buffer(line), asio::as_tuple(asio::use_awaitable));
}

}  // namespace

StepGathering::StepGathering(asio::io_context& context, const SlurmTask& task, Munge munge, StepNames* names,
                             std::chrono::milliseconds timeout, Done done)
    : context_(context),
      task_(task),
      munge_(munge),
      timeout_(timeout),
      done_(std::move(done)),
      acceptor_(listen_where_expected(context, task, names)),
      port_(acceptor_.local_endpoint().port()),
      timer_(context, timeout),
      roll_(task.step, task.size),
      strangers_(kMostStrangers + static_cast<std::size_t>(task.size)) {
  asio::co_spawn(context_, accept(), report);
  timer_.async_wait([this](boost::system::error_code error) {
    if (!error) refuse_all();
  });
}

asio::awaitable<void> StepGathering::accept() {
  for (;;) {
    auto [error, socket] = co_await acceptor_.async_accept(asio::as_tuple(asio::use_awaitable));
    if (error == asio::error::operation_aborted) co_return;
    if (error) {  // such as too many open files
      asio::steady_timer pause(context_, 100ms);
      co_await pause.async_wait(asio::as_tuple(asio::use_awaitable));
      continue;
    }
    asio::co_spawn(context_, receive(strangers_.add(std::move(socket))), report);
  }
}

asio::awaitable<void> StepGathering::receive(Strangers::Socket stranger) {
  tcp::socket& socket = *stranger;
  boost::system::error_code error;
  const std::string from = text_of(socket.remote_endpoint(error).address());  // unknown once the other side has left
  const std::string at = text_of(socket.local_endpoint(error).address());
  asio::steady_timer limit(context_, kHelloLimit);
  limit.async_wait([stranger](boost::system::error_code stopped) {
    if (!stopped) stranger->cancel(stopped);
  });
  std::string line;
  std::tie(error, std::ignore) = co_await asio::async_write(
      socket, asio::buffer(kStepGreeting.data(), kStepGreeting.size()), asio::as_tuple(asio::use_awaitable));
  if (!error)
    std::tie(error, std::ignore) = co_await asio::async_read_until(
        socket, asio::dynamic_buffer(line, kMaxStepHelloBytes), '\n', asio::as_tuple(asio::use_awaitable));
  limit.cancel();
  strangers_.remove(stranger);
  if (error) co_return;
  line.resize(line.find('\n'));
  add(std::move(socket), line, from, at);
}

void StepGathering::add(tcp::socket socket, const std::string& line, const std::string& from, const std::string& at) {
  try {
    StepHello hello = parse_step_hello(munge_.open(line));
    if (hello.called != port_)
      throw Error(Errc::kAuth,
                  fmt::format("the hello of task {} was for port {}: somebody passes it on", hello.rank, hello.called));
    roll_.add(hello, from, at);
    waiting_.push_back({std::move(socket), std::move(hello)});
  } catch (const Error& failure) {
    if (++warnings_ <= kMostWarnings) log::warn("refused a connection from {}: {}", from, one_line(failure.what()));
    return;
  }
  if (!roll_.complete()) return;
  boost::system::error_code ignored;
  timer_.cancel();
  acceptor_.close(ignored);
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
  boost::system::error_code ignored;
  acceptor_.close(ignored);
  for (Waiting& each : std::exchange(waiting_, {}))
    answer(std::move(each.socket), encode_refusal(each.hello.nonce, reason));
  done_(false);
}

void StepGathering::answer(tcp::socket socket, std::string text) {
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
