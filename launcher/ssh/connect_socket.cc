#include "launcher/ssh/connect_socket.hpp"

#include <chrono>
#include <list>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <fmt/format.h>

#include "base/error.hpp"

namespace runjob {
namespace {

namespace asio = boost::asio;
using asio::ip::tcp;

constexpr std::chrono::milliseconds kHeadStart{250};  // RFC 8305, section 8

/// Attempts that run at the same time. Shared by the coroutine and the attempts' handlers.
struct Race : std::enable_shared_from_this<Race> {
  explicit Race(const asio::any_io_executor& executor) : progress(executor) {}

  asio::steady_timer progress;  // cancelled when an attempt has ended
  std::list<tcp::socket> runners;
  std::optional<tcp::socket> winner;
  std::string first_failure;
  int running = 0;

  void start(const tcp::endpoint& endpoint) {
    ++running;
    const auto runner = runners.emplace(runners.end(), progress.get_executor());
    runner->async_connect(endpoint,
                          [self = shared_from_this(), runner, endpoint](const boost::system::error_code& error) {
                            self->ended(runner, endpoint, error);
                          });
  }

  void ended(std::list<tcp::socket>::iterator runner, const tcp::endpoint& endpoint,
             const boost::system::error_code& error) {
    --running;
    if (!error && !winner) winner.emplace(std::move(*runner));
    if (error && first_failure.empty())
      first_failure = fmt::format("{} port {}: {}", endpoint.address().to_string(), endpoint.port(), error.message());
    runners.erase(runner);
    progress.cancel();
  }

  void stop() {
    boost::system::error_code ignored;
    for (tcp::socket& runner : runners) runner.close(ignored);
  }
};

/// Ends the attempts that are still running, however the coroutine ends.
struct Finish {
  Race& race;
  ~Finish() { race.stop(); }
};

}  // namespace

asio::awaitable<tcp::socket> connect_socket(asio::any_io_executor executor, std::vector<tcp::endpoint> endpoints) {
  const auto race = std::make_shared<Race>(executor);
  const Finish finish{*race};
  std::size_t next = 0;
  while (!race->winner && (next < endpoints.size() || race->running > 0)) {
    if (next < endpoints.size()) race->start(endpoints[next++]);
    const bool more = next < endpoints.size();
    race->progress.expires_at(more ? asio::steady_timer::clock_type::now() + kHeadStart
                                   : asio::steady_timer::time_point::max());
    const auto [cancelled] = co_await race->progress.async_wait(asio::as_tuple(asio::use_awaitable));
    static_cast<void>(cancelled);
  }
  if (!race->winner) throw Error(Errc::kConnect, race->first_failure);
  tcp::socket socket = std::move(*race->winner);
  boost::system::error_code ignored;
  socket.set_option(tcp::no_delay(true), ignored);
  co_return socket;
}

}  // namespace runjob
