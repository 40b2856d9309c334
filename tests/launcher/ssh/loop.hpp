#pragma once

#include <exception>
#include <optional>
#include <utility>

#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>

namespace runjob {

/// Runs `context` until `done()`. False when it had nothing left to do before that.
template <class Done>
bool run_until(boost::asio::io_context& context, Done done) {
  context.restart();
  while (!done()) {
    if (context.run_one() == 0) return false;
  }
  return true;
}

/// Runs `context` until `work` has ended; its result, or its exception.
template <class T>
T run_on(boost::asio::io_context& context, boost::asio::awaitable<T> work) {
  std::exception_ptr failure;
  std::optional<T> result;
  boost::asio::co_spawn(context, std::move(work), [&](std::exception_ptr error, T value) {
    failure = std::move(error);
    result.emplace(std::move(value));
  });
  run_until(context, [&] { return result.has_value(); });
  if (failure) std::rethrow_exception(failure);
  return std::move(result.value());
}

}  // namespace runjob
