#include "launcher/ssh/handshake_limit.hpp"

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/use_awaitable.hpp>

namespace runjob {

namespace asio = boost::asio;

asio::awaitable<HandshakeLimit::Permit> HandshakeLimit::acquire() {
  // One that is cancelled after it was woken must not keep the news to itself.
  const struct PassOn {
    HandshakeLimit& limit;
    ~PassOn() { limit.pass_on(); }
  } pass_on{*this};
  while (free_ == 0) {
    const auto [cancelled] = co_await given_back_.async_wait(asio::as_tuple(asio::use_awaitable));
    static_cast<void>(cancelled);
  }
  co_return Permit(*this);
}

}  // namespace runjob
