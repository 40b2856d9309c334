#include "launcher/srun_task/join_step.hpp"

#include <optional>
#include <sys/socket.h>
#include <thread>
#include <utility>
#include <vector>

#include <boost/asio/connect.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/read_until.hpp>
#include <boost/asio/write.hpp>
#include <fmt/format.h>

#include "base/error.hpp"
#include "rendezvous/auth.hpp"

namespace runjob {
namespace {

namespace asio = boost::asio;
using asio::ip::tcp;
using Clock = std::chrono::steady_clock;
using namespace std::chrono_literals;

constexpr auto kConnectLimit = 3s;
constexpr auto kGreetingLimit = 3s;
constexpr auto kPause = 50ms;

/// One connection, on a loop of its own so that each step has a time limit.
class Connection {
 public:
  /// Errors  Error(kConnect).
  Connection(const tcp::endpoint& to, Clock::duration limit) : socket_(context_) {
    socket_.async_connect(to, [this](boost::system::error_code error) { error_ = error; });
    run(limit);
  }

  void write(const std::string& text, Clock::duration limit) {
    asio::async_write(socket_, asio::buffer(text),
                      [this](boost::system::error_code error, std::size_t) { error_ = error; });
    run(limit);
  }

  /// Without its end.
  std::string read_line(Clock::duration limit) {
    asio::async_read_until(socket_, asio::dynamic_buffer(received_, kMaxStepLineBytes), '\n',
                           [this](boost::system::error_code error, std::size_t) { error_ = error; });
    run(limit);
    const std::size_t end = received_.find('\n');
    std::string line = received_.substr(0, end);
    received_.erase(0, end + 1);
    return line;
  }

 private:
  void run(Clock::duration limit) {
    error_ = asio::error::would_block;
    context_.restart();
    context_.run_for(limit);
    if (error_ == asio::error::would_block) {
      socket_.close(error_);
      context_.run();
      error_ = asio::error::timed_out;
    }
    if (error_) throw Error(Errc::kConnect, error_.message());
  }

  asio::io_context context_;
  tcp::socket socket_;
  boost::system::error_code error_;
  std::string received_;
};

/// On the first node itself its loopback, whatever its name means there; elsewhere what the name means and is not
/// loopback: 127.0.1.1 for a host's own name is common.
std::vector<asio::ip::address> addresses_of_head(const SlurmTask& task) {
  if (task.node == 0) return {asio::ip::address_v4::loopback()};
  asio::io_context context;
  tcp::resolver resolver(context);
  boost::system::error_code error;
  const auto found = resolver.resolve(task.first_node, "", error);
  std::vector<asio::ip::address> addresses;
  for (const auto& each : found) {
    if (!each.endpoint().address().is_loopback()) addresses.push_back(each.endpoint().address());
  }
  // IPv4 where there is a choice: all that ranks link to can do it.
  std::stable_partition(addresses.begin(), addresses.end(), [](const auto& address) { return address.is_v4(); });
  if (addresses.empty())
    throw Error(
        Errc::kConnect,
        fmt::format("{}: the name of the step's first node, {}, has no address here{}; it must, in DNS or /etc/hosts",
                    task.node_name, task.first_node, error ? fmt::format(" ({})", error.message()) : ""));
  return addresses;
}

std::string nonce() {
  return rendezvous::to_hex(rendezvous::random_nonce());
}

}  // namespace

JoinedStep join_step(const SlurmTask& task, const Munge& munge, int free_port, std::chrono::milliseconds timeout) {
  const auto deadline = Clock::now() + timeout;
  const auto addresses = addresses_of_head(task);
  std::string reason;
  do {
    for (const asio::ip::address& address : addresses) {
      for (const int port : step_ports(task.step)) {
        std::optional<Connection> connection;
        try {
          connection.emplace(tcp::endpoint(address, static_cast<unsigned short>(port)), kConnectLimit);
          if (connection->read_line(kGreetingLimit) + '\n' != kStepGreeting) continue;  // somebody else's
        } catch (const Error& error) {
          reason = error.what();
          continue;
        }
        const StepHello hello{task.step, nonce(), task.rank, task.size, task.node, task.node_name, free_port};
        connection->write(munge.seal(encode(hello)) + '\n', kConnectLimit);
        try {
          const std::string answer = munge.open(connection->read_line(deadline - Clock::now() + kGreetingLimit));
          return {address.to_string(), parse_step_welcome(answer, hello.nonce)};
        } catch (const Error& error) {
          if (error.code() != Errc::kConnect) throw;
          throw Error(Errc::kConnect, fmt::format("{}: task 0 on {} has left ({}); see what it says", task.node_name,
                                                  task.first_node, error.what()));
        }
      }
    }
    std::this_thread::sleep_for(kPause);
  } while (Clock::now() < deadline);
  throw Error(
      Errc::kConnect,
      fmt::format("{}: task 0 of step {} cannot be reached on {} ({}) within the {} s of --start-timeout: {}; can this "
                  "node connect to that one?",
                  task.node_name, task.step, task.first_node, addresses.front().to_string(),
                  std::chrono::duration<double>(timeout).count(), reason));
}

}  // namespace runjob
