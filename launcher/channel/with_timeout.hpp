#pragma once

#include <chrono>
#include <exception>
#include <optional>
#include <utility>

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/deferred.hpp>
#include <boost/asio/experimental/parallel_group.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>

namespace runjob {

/// Runs `operation`, which must end soon when it is cancelled, until `limit` expires or is cancelled. Returns its
/// result, or nothing when `limit` came first. Throws what it has thrown.
/// Threads  the loop's.
template <class T>
boost::asio::awaitable<std::optional<T>> with_timeout(boost::asio::steady_timer& limit,
                                                      boost::asio::awaitable<T> operation) {
  namespace asio = boost::asio;
  auto race = asio::experimental::make_parallel_group(
      asio::co_spawn(limit.get_executor(), std::move(operation), asio::deferred), limit.async_wait(asio::deferred));
  auto [order, error, result, time_is_up] =
      co_await race.async_wait(asio::experimental::wait_for_one(), asio::use_awaitable);
  static_cast<void>(time_is_up);
  if (order[0] != 0) co_return std::nullopt;
  if (error) std::rethrow_exception(error);
  co_return std::optional<T>(std::move(result));
}

/// The same for an operation without a result: false when `limit` came first.
inline boost::asio::awaitable<bool> with_timeout(boost::asio::steady_timer& limit,
                                                 boost::asio::awaitable<void> operation) {
  auto complete = [](boost::asio::awaitable<void> awaited) -> boost::asio::awaitable<bool> {
    co_await std::move(awaited);
    co_return true;
  };
  co_return (co_await with_timeout(limit, complete(std::move(operation)))).has_value();
}

/// The same for a time.
template <class T>
boost::asio::awaitable<std::optional<T>> with_timeout(boost::asio::any_io_executor executor,
                                                      boost::asio::awaitable<T> operation,
                                                      std::chrono::milliseconds time) {
  boost::asio::steady_timer limit(std::move(executor), time);
  co_return co_await with_timeout(limit, std::move(operation));
}

inline boost::asio::awaitable<bool> with_timeout(boost::asio::any_io_executor executor,
                                                 boost::asio::awaitable<void> operation,
                                                 std::chrono::milliseconds time) {
  boost::asio::steady_timer limit(std::move(executor), time);
  co_return co_await with_timeout(limit, std::move(operation));
}

}  // namespace runjob
