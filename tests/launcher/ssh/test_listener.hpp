#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>

namespace runjob {

/// A TCP server on 127.0.0.1 that is no sshd: it sends a text to everybody and then hangs up, or not.
/// Threads  the loop's.
class TestListener {
 public:
  enum class Then { kHangUp, kWait, kRepeat };

  TestListener(boost::asio::io_context& context, std::string text, Then then);

  int port() const { return acceptor_.local_endpoint().port(); }
  int accepted() const { return accepted_; }

 private:
  void accept();
  void say(boost::asio::ip::tcp::socket& guest);

  boost::asio::ip::tcp::acceptor acceptor_;
  std::string text_;
  Then then_;
  int accepted_ = 0;
  std::vector<std::unique_ptr<boost::asio::ip::tcp::socket>> guests_;
};

/// A port of 127.0.0.1 at which nobody answers: the queue of its listener is full, so the kernel drops what comes.
class SilentPort {
 public:
  explicit SilentPort(boost::asio::io_context& context);

  int port() const { return acceptor_.local_endpoint().port(); }

 private:
  boost::asio::ip::tcp::acceptor acceptor_;
  std::vector<boost::asio::ip::tcp::socket> guests_;
};

/// A port of 127.0.0.1 that nobody listens at, as long as this object keeps it for itself.
class ClosedPort {
 public:
  explicit ClosedPort(boost::asio::io_context& context);

  int port() const { return socket_.local_endpoint().port(); }

 private:
  boost::asio::ip::tcp::socket socket_;
};

}  // namespace runjob
