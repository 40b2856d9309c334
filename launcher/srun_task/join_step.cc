#include "launcher/srun_task/join_step.hpp"

#include <algorithm>
#include <charconv>
#include <exception>
#include <memory>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/read_until.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>
#include <fmt/format.h>

#include "base/error.hpp"
#include "base/secrets/secret.hpp"
#include "rendezvous/auth.hpp"

namespace runjob {
namespace {

namespace asio = boost::asio;
using asio::ip::tcp;
using boost::system::error_code;
using Clock = std::chrono::steady_clock;
using namespace std::chrono_literals;

constexpr auto kAsTuple = asio::as_tuple(asio::use_awaitable);
constexpr auto kGreetingLimit = 3s;     // of a connection, with its making
constexpr auto kStagger = 20ms;         // between the calls of two ports, of which the first does not answer
constexpr std::size_t kUsualPorts = 8;  // task 0 is on one of these unless somebody holds all of them
constexpr auto kPause = 50ms;           // between two rounds while nobody has greeted
constexpr auto kAllPortsPause = 300ms;  // before the first round that calls all ports
constexpr auto kAllPortsInterval = 1s;
constexpr auto kFirstDoubt = 400ms;  // before the others are called although one has greeted; doubles each time
constexpr auto kMostDoubt = 10s;
constexpr auto kMostLookUpPause = 1s;  // between two questions for task 0's port, each of which srun answers
constexpr auto kNamesAloneLimit = 5s;  // from which on the other ports are called too: task 0 may have no names
constexpr auto kLeftLimit = 1500ms;    // how long another task 0 is looked for after one has hung up

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

/// Looks for task 0 on all ports where it may be. Anybody may listen on one of them, greet as it does and never answer,
/// so the search goes on until a welcome has come that this user has sealed.
class Search {
 public:
  Search(const SlurmTask& task, const Munge& munge, StepNames* names, int free_port,
         std::vector<asio::ip::address> addresses)
      : task_(task),
        munge_(munge),
        names_(names),
        free_port_(free_port),
        addresses_(std::move(addresses)),
        pause_(context_) {
    add_places(step_ports(task));
    usual_ = std::min(places_.size(), (task.reserved_ports.size() + kUsualPorts) * addresses_.size());
  }

  /// Nothing when the time is up. Errors  see join_step().
  std::optional<JoinedStep> run(Clock::time_point deadline) {
    asio::co_spawn(context_, call_all(), [this](const std::exception_ptr& error) { end(error); });
    context_.run_until(deadline);
    if (!waiting_.empty()) context_.run_for(kGreetingLimit);  // for task 0's refusal, whose deadline is the same
    if (failure_) std::rethrow_exception(failure_);
    return std::move(joined_);
  }

  /// Why the last call failed.
  const std::string& reason() const { return reason_; }

 private:
  void add_places(const std::vector<int>& ports) {
    for (const int port : ports) {
      for (const asio::ip::address& address : addresses_)
        places_.push_back({address, static_cast<unsigned short>(port)});
    }
  }

  /// Looks up the port that task 0 has published, at most once in a while. When it is known, no other one is called.
  void look_up_port() {
    if (!names_ || Clock::now() < look_up_at_) return;
    const std::string port = names_->look_up(kStepPortName).value_or("");
    int number = 0;
    std::from_chars(port.data(), port.data() + port.size(), number);
    if (number > 0 && number <= 65'535) {
      names_ = nullptr;
      places_.clear();
      add_places({number});
      usual_ = places_.size();
    } else {
      look_up_at_ = Clock::now() + look_up_pause_;
      look_up_pause_ = std::min<Clock::duration>(2 * look_up_pause_, kMostLookUpPause);
    }
  }

  void end(const std::exception_ptr& error) {
    if (error) failure_ = error;
    if (failure_ || joined_) context_.stop();
  }

  asio::awaitable<void> call_all() {
    const auto derived_ports_at = Clock::now() + (names_ ? kNamesAloneLimit : Clock::duration::zero());
    auto all_at = derived_ports_at + kAllPortsPause;
    Clock::duration doubt = kFirstDoubt;
    for (;;) {
      look_up_port();
      if (names_ && Clock::now() < derived_ports_at) {
        co_await sleep(kPause);
        continue;
      }
      const bool all = Clock::now() >= all_at;
      const std::size_t count = all ? places_.size() : usual_;
      for (std::size_t i = 0; i < count && (all || waiting_.empty()); ++i) co_await call(places_[i]);
      if (left_ && waiting_.empty() && Clock::now() - *left_ > kLeftLimit)
        throw Error(Errc::kConnect, fmt::format("{}: task 0 on {} has left ({}); see what it says", task_.node_name,
                                                task_.first_node, reason_));
      if (all) all_at = Clock::now() + kAllPortsInterval;
      if (!waiting_.empty()) {  // for task 0, most likely, which answers when all tasks have come
        co_await sleep(names_ ? std::min<Clock::duration>(doubt, look_up_pause_) : doubt);
        if (!waiting_.empty()) all_at = Clock::now();
        doubt = std::min<Clock::duration>(2 * doubt, kMostDoubt);
      } else {
        co_await sleep(kPause);
      }
    }
  }

  /// Returns when the call has failed or greeted, or has done neither for a while.
  asio::awaitable<void> call(const tcp::endpoint& place) {
    if (waiting_.contains(place.port()) || !under_way_.insert(place).second) co_return;
    asio::co_spawn(context_, talk(place), [this, place](const std::exception_ptr& error) {
      under_way_.erase(place);
      pause_.cancel();
      end(error);
    });
    co_await sleep(kStagger);
  }

  asio::awaitable<void> sleep(Clock::duration time) {
    pause_.expires_after(time);
    co_await pause_.async_wait(kAsTuple);
  }

  asio::awaitable<void> talk(tcp::endpoint place) {
    const auto socket = std::make_shared<tcp::socket>(context_);
    asio::steady_timer limit(context_, kGreetingLimit);
    limit.async_wait([socket](error_code stopped) {
      if (!stopped) socket->close(stopped);
    });
    std::string received;
    auto [error] = co_await socket->async_connect(place, kAsTuple);
    if (!error) error = co_await read_line(*socket, received, kStepGreeting.size());
    limit.cancel();
    if (error) {
      reason_ = error.message();
    } else if (received != kStepGreeting) {
      reason_ = fmt::format("another program listens on port {}", place.port());
    } else {
      co_await announce(*socket, place);
    }
  }

  /// Errors  Error(kUnavailable) with task 0's reason, or MUNGE's.
  asio::awaitable<void> announce(tcp::socket& socket, tcp::endpoint place) {
    const StepHello hello{task_.step, rendezvous::to_hex(rendezvous::random_nonce()),
                          task_.rank, task_.size,
                          task_.node, task_.node_name,
                          free_port_, place.port()};
    const std::string line = munge_.seal(encode(hello)) + '\n';
    std::string received;
    if (!waiting_.insert(place.port()).second) co_return;  // reached by another address
    auto [error, written] = co_await asio::async_write(socket, asio::buffer(line), kAsTuple);
    static_cast<void>(written);
    if (!error) error = co_await read_line(socket, received, kMaxStepWelcomeBytes);
    waiting_.erase(place.port());
    if (error) {
      reason_ = error.message();
      if (!left_) left_ = Clock::now();
      co_return;
    }
    try {
      received.pop_back();
      std::string text = munge_.open(received);
      joined_ = JoinedStep{place.address().to_string(), parse_step_welcome(text, hello.nonce)};
      wipe(text);
    } catch (const Error& refused) {
      if (refused.code() == Errc::kUnavailable) throw;
      reason_ = refused.what();  // somebody else has answered
    }
  }

  /// One line with its end, and nothing after it.
  static asio::awaitable<error_code> read_line(tcp::socket& socket, std::string& line, std::size_t most) {
    auto [error, size] = co_await asio::async_read_until(socket, asio::dynamic_buffer(line, most), '\n', kAsTuple);
    if (!error && size != line.size()) error = asio::error::message_size;
    co_return error;
  }

  const SlurmTask& task_;
  const Munge& munge_;
  StepNames* names_;  // null if the step has none, and when task 0's port is known
  Clock::time_point look_up_at_;
  Clock::duration look_up_pause_ = kPause;
  const int free_port_;
  const std::vector<asio::ip::address> addresses_;  // of task 0's node
  asio::io_context context_;
  asio::steady_timer pause_;               // of call_all(), cut short by a call that ends
  std::vector<tcp::endpoint> places_;      // best first
  std::size_t usual_ = 0;                  // how many of them are called in most rounds
  std::set<tcp::endpoint> under_way_;      // calls that have not ended
  std::set<unsigned short> waiting_;       // ports to which a hello went and from which no answer has come
  std::optional<Clock::time_point> left_;  // when one of these was hung up on
  std::string reason_;
  std::optional<JoinedStep> joined_;
  std::exception_ptr failure_;
};

}  // namespace

JoinedStep join_step(const SlurmTask& task, const Munge& munge, int free_port, std::chrono::milliseconds timeout,
                     StepNames* names) {
  const auto deadline = Clock::now() + timeout;
  const auto addresses = addresses_of_head(task);
  Search search(task, munge, names, free_port, addresses);
  if (auto joined = search.run(deadline)) return std::move(*joined);
  throw Error(
      Errc::kConnect,
      fmt::format("{}: task 0 of step {} cannot be reached on {} ({}) within the {} s of --start-timeout: {}; can this "
                  "node connect to that one?",
                  task.node_name, task.step, task.first_node, addresses.front().to_string(),
                  std::chrono::duration<double>(timeout).count(), search.reason()));
}

}  // namespace runjob
