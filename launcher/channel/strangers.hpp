#pragma once

#include <cstddef>
#include <list>
#include <memory>
#include <utility>

#include <boost/asio/ip/tcp.hpp>

namespace runjob {

/// The connections of a listener whose other ends have not shown yet who they are. When there are too many, the oldest
/// one is closed, so that nobody who stays silent keeps others out.
/// Owner    each connection is shared with the coroutine that reads it, which sees it close and removes it.
/// Threads  the loop's one thread.
class Strangers {
 public:
  using Socket = std::shared_ptr<boost::asio::ip::tcp::socket>;

  explicit Strangers(std::size_t most) : most_(most) {}

  Socket add(boost::asio::ip::tcp::socket socket) {
    if (sockets_.size() == most_) close_oldest();
    return sockets_.emplace_back(std::make_shared<boost::asio::ip::tcp::socket>(std::move(socket)));
  }

  void remove(const Socket& socket) { sockets_.remove(socket); }

  void close_all() {
    while (!sockets_.empty()) close_oldest();
  }

 private:
  void close_oldest() {
    boost::system::error_code ignored;
    sockets_.front()->close(ignored);
    sockets_.pop_front();
  }

  const std::size_t most_;
  std::list<Socket> sockets_;  // oldest first
};

}  // namespace runjob
