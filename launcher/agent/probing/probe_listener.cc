#include "launcher/agent/probing/probe_listener.hpp"

#include <array>
#include <chrono>
#include <string_view>
#include <utility>

#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/read.hpp>
#include <boost/asio/write.hpp>

#include "launcher/channel/no_throw.hpp"

namespace runjob {
namespace {

namespace asio = boost::asio;
using boost::system::error_code;
using namespace std::chrono_literals;

constexpr auto kLifetime = 30s;  // more than the launcher waits for anything

asio::awaitable<void> answer(StreamSocket socket, ProbeToken token) {
  std::array<char, ProbeToken::kBytes> received{};
  const asio::mutable_buffer room = asio::buffer(received);
  const auto [error, bytes] = co_await asio::async_read(socket, room, kNoThrow);
  if (error || std::string_view(received.data(), bytes) != token.question) co_return;
  const asio::const_buffer answer = asio::buffer(token.answer);
  co_await asio::async_write(socket, answer, kNoThrow);
}

}  // namespace

ProbeListener::ProbeListener(asio::any_io_executor executor, const ProbeListen& message, std::size_t most_connections)
    : listener_(std::make_shared<BoundedListener>(executor, BoundedListener::Bounds{most_connections, kLifetime},
                                                  [token = message.token](StreamSocket socket, const std::string&) {
                                                    return answer(std::move(socket), token);
                                                  })),
      end_(executor, kLifetime) {
  for (const std::string& text : message.addresses) {
    error_code error;
    const asio::ip::address address = asio::ip::make_address(text, error);
    listening_.ports.push_back(error ? ProbePort{0, error.value()} : listen(executor, address));
  }
  end_.async_wait([listener = listener_](error_code cancelled) {
    if (!cancelled) listener->stop();
  });
}

ProbeListener::~ProbeListener() {
  listener_->stop();
}

ProbePort ProbeListener::listen(asio::any_io_executor executor, const asio::ip::address& address) {
  error_code error;
  StreamAcceptor acceptor = listen_at(std::move(executor), asio::ip::tcp::endpoint(address, 0), error);
  if (error) return {0, error.value()};
  const int port = port_of(acceptor);
  listener_->accept_from(std::move(acceptor));
  return {port, 0};
}

}  // namespace runjob
