#pragma once

#include <chrono>
#include <string>
#include <string_view>
#include <vector>

#include <boost/asio/generic/stream_protocol.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/beast/core/basic_stream.hpp>

#include "rendezvous/protocol.hpp"

namespace runjob::rendezvous {

/// A blocking HTTP/1.1 client on one keep-alive connection, made when first needed and anew when it broke.
/// Private to Client: includes Boost.
/// Threads  one at a time; starts none.
/// Errors   as Client.
class HttpConnection {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;

  explicit HttpConnection(std::string_view address);

  /// Sends `request` and returns the answer, whatever its status. When the connection breaks before the
  /// answer is there, `request` is sent once more on a new one, so it must be harmless to carry out twice.
  Response exchange(const Request& request, TimePoint deadline);

  const std::string& address() const { return address_; }

 private:
  using Stream = boost::beast::basic_stream<boost::asio::generic::stream_protocol>;
  using Endpoint = boost::asio::generic::stream_protocol::endpoint;

  std::vector<Endpoint> resolve();
  void connect(TimePoint deadline);
  boost::system::error_code connect_to(const Endpoint& endpoint, TimePoint deadline);
  boost::system::error_code try_exchange(const Request& request, TimePoint deadline, Response& response);
  template <class Start>
  boost::system::error_code run(TimePoint deadline, Start start);

  std::string address_;
  std::string path_;  // of a Unix socket, or
  std::string host_, port_;
  boost::asio::io_context context_{1};
  Stream stream_{context_};
};

}  // namespace runjob::rendezvous
