#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <boost/asio/awaitable.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/steady_timer.hpp>

#include "base/error.hpp"

namespace runjob {

/// The connection has ended, by whoever it was. The message is the reason only: "the other side closed it".
class ConnectionEnded : public Error {
 public:
  explicit ConnectionEnded(const std::string& reason) : Error(Errc::kConnect, reason) {}
};

/// A TCP connection as two buffers in memory. libssh2 takes from the one and puts into the other, and so never meets a
/// full or an empty socket: it becomes a state machine whose every "would block" means that more input is needed. A
/// packet is then never sent in part, which libssh2 would answer by refusing all other packets until it is complete,
/// the window adjustments of a concurrent read among them.
/// Owner    shared by the session that uses it and by its operations in flight, which outlive a closed connection.
/// Threads  the loop's one thread.
class SshWire : public std::enable_shared_from_this<SshWire> {
 public:
  explicit SshWire(boost::asio::ip::tcp::socket socket);

  /// Bytes that have arrived, at most `size`; -EAGAIN when there are none, also after the end and after close().
  std::ptrdiff_t take(void* data, std::size_t size);

  /// Takes all of `data` for sending; nothing is sent before flush().
  std::ptrdiff_t put(const void* data, std::size_t size);

  /// Begins to send what has been put; never waits.
  void flush();

  /// Waits until something has arrived, for whoever takes it first: the caller tries again and may have to wait again.
  /// Errors  ConnectionEnded when nothing more will.
  boost::asio::awaitable<void> input();

  /// Waits until the kernel has taken all but at most `bytes` of the bytes that were put. Also returns when sending has
  /// failed; the reading side gives the reason.
  /// Errors  ConnectionEnded after close().
  boost::asio::awaitable<void> flushed(std::size_t bytes);

  /// Throws ConnectionEnded after close().
  void require_open() const;

  /// Sends what can be sent at once, then ends everything that waits.
  void close();

  /// The first bytes that were received, for the message about a program that is not an SSH server; libssh2 does not
  /// give them.
  const std::string& beginning() const { return beginning_; }
  std::uint64_t received() const { return received_; }  ///< bytes in all
  int descriptor() { return socket_.native_handle(); }

 private:
  boost::asio::awaitable<void> wait();
  void receive();
  void on_received(const boost::system::error_code& error, std::size_t bytes);
  void on_sent(const boost::system::error_code& error);
  void wake() { changed_.cancel(); }

  boost::asio::ip::tcp::socket socket_;
  boost::asio::steady_timer changed_;  // never expires: cancelled to wake everybody who waits
  std::vector<char> input_;
  std::size_t taken_ = 0;   // of input_
  std::size_t filled_ = 0;  // of input_
  std::string beginning_;
  std::uint64_t received_ = 0;
  std::string output_;     // put, not yet being sent
  std::string in_flight_;  // being sent
  std::string end_;        // why no more will arrive; "" as long as it may
  bool receiving_ = false;
  bool sending_ = false;
  bool broken_ = false;  // nothing can be sent any more
  bool closed_ = false;
};

}  // namespace runjob
