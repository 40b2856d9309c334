#include "tests/launcher/ssh/test_listener.hpp"

#include <memory>
#include <poll.h>
#include <sys/socket.h>

#include <boost/asio/write.hpp>

namespace runjob {

namespace asio = boost::asio;
using asio::ip::tcp;

namespace {

tcp::endpoint any_port() {
  return {asio::ip::address_v4::loopback(), 0};
}

}  // namespace

TestListener::TestListener(asio::io_context& context, std::string text, Then then)
    : acceptor_(context, any_port()), text_(std::move(text)), then_(then) {
  accept();
}

void TestListener::accept() {
  acceptor_.async_accept([this](const boost::system::error_code& error, tcp::socket guest) {
    if (error) return;
    ++accepted_;
    guests_.push_back(std::make_unique<tcp::socket>(std::move(guest)));
    say(*guests_.back());
    accept();
  });
}

void TestListener::say(tcp::socket& guest) {
  asio::async_write(guest, asio::buffer(text_), [this, &guest](const boost::system::error_code& error, std::size_t) {
    boost::system::error_code ignored;
    if (then_ == Then::kHangUp) guest.close(ignored);
    if (then_ == Then::kRepeat && !error) say(guest);
  });
}

SilentPort::SilentPort(asio::io_context& context) : acceptor_(context) {
  acceptor_.open(tcp::v4());
  acceptor_.bind(any_port());
  acceptor_.listen(0);
  for (bool answered = true; answered;) {
    tcp::socket& guest = guests_.emplace_back(context, tcp::v4());
    guest.native_non_blocking(true);
    const tcp::endpoint endpoint = acceptor_.local_endpoint();
    static_cast<void>(::connect(guest.native_handle(), endpoint.data(), static_cast<socklen_t>(endpoint.size())));
    pollfd wait{guest.native_handle(), POLLOUT, 0};
    answered = ::poll(&wait, 1, 100) == 1;  // on loopback the answer is there when connect() returns
  }
}

ClosedPort::ClosedPort(asio::io_context& context) : socket_(context, any_port()) {}

}  // namespace runjob
