#include "launcher/ssh/handshake_limit.hpp"

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/use_awaitable.hpp>

namespace runjob {

namespace asio = boost::asio;

asio::awaitable<HandshakeLimit::Permit> HandshakeLimit::acquire() {
  // One that is cancelled after it was woken must not keep the news to itself.
  const struct PassOn {
    std::shared_ptr<Places> places;
    ~PassOn() { places->pass_on(); }
  } pass_on{places_};
  while (pass_on.places->free == 0) {
    const auto [cancelled] = co_await pass_on.places->given_back.async_wait(asio::as_tuple(asio::use_awaitable));
    static_cast<void>(cancelled);
  }
  co_return Permit(pass_on.places);
}

}  // namespace runjob
