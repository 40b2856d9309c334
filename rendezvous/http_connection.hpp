#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <boost/asio/generic/stream_protocol.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/beast/core/basic_stream.hpp>

#include "rendezvous/auth.hpp"
#include "rendezvous/job_key.hpp"
#include "rendezvous/protocol.hpp"

namespace runjob::rendezvous {

/// A blocking HTTP/1.1 client on one keep-alive connection, made when first needed and anew when it broke.
/// With a key each request is signed and each answer checked (auth.hpp), over TCP always.
/// Private to Client: includes Boost.
/// Threads  one at a time; starts none.
/// Errors   as Client.
class HttpConnection {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;

  /// Errors  Error(kUsage) for a bad address, or one over TCP without a key.
  explicit HttpConnection(std::string_view address, std::optional<JobKey> key = std::nullopt);

  /// Sends `request` and returns the answer, whatever its status. When the connection breaks before the
  /// answer is there, `request` is sent once more on a new one, so it must be harmless to carry out twice.
  Response exchange(const Request& request, TimePoint deadline);

  const std::string& address() const { return address_; }

 private:
  using Stream = boost::beast::basic_stream<boost::asio::generic::stream_protocol>;
  using Endpoint = boost::asio::generic::stream_protocol::endpoint;
  struct Answer {
    Response response;
    std::string nonce, mac;  // the headers of auth.hpp
  };

  void parse_address();
  std::vector<Endpoint> resolve();
  void connect(TimePoint deadline);
  boost::system::error_code connect_to(const Endpoint& endpoint, TimePoint deadline);
  boost::system::error_code greet(TimePoint deadline);
  boost::system::error_code try_exchange(const Request& request, TimePoint deadline, Response& response);
  boost::system::error_code send(const Request& request, const AuthHeaders& headers, TimePoint deadline,
                                 Answer& answer);
  void check_signature(const Request& request, const Answer& answer);
  template <class Start>
  boost::system::error_code run(TimePoint deadline, Start start);

  std::string address_;
  std::string path_;  // of a Unix socket, or
  std::string host_, port_;
  std::optional<JobKey> key_;
  std::optional<ConnectionAuth> auth_;  // of the connection that is open
  boost::asio::io_context context_{1};
  Stream stream_{context_};
};

}  // namespace runjob::rendezvous
