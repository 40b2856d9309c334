#pragma once

#include <libssh2.h>
#include <memory>
#include <string>
#include <string_view>

#include <boost/asio/awaitable.hpp>
#include <boost/asio/ip/tcp.hpp>

#include "launcher/ssh/ssh_wire.hpp"

namespace runjob {

/// libssh2's session over a connection, with its calls as coroutines.
/// Owner    of both; the destructor ends the connection and never waits.
/// Threads  the loop's one thread. Several coroutines may wait in ready() at once.
class SshSession {
 public:
  /// `socket` is connected.
  explicit SshSession(boost::asio::ip::tcp::socket socket);
  ~SshSession();
  SshSession(const SshSession&) = delete;
  SshSession& operator=(const SshSession&) = delete;

  LIBSSH2_SESSION* get() const { return session_; }
  SshWire& wire() { return *wire_; }

  /// Sets the algorithms of one `kind` (LIBSSH2_METHOD_...) that are offered, best first. `names` are separated by
  /// commas; those that libssh2 does not know are left out.
  /// Errors  SshProgramNeeded when it knows none of them.
  void prefer(int kind, std::string_view names);

  /// Repeats `call`, a call of libssh2, until it gives something other than LIBSSH2_ERROR_EAGAIN: that.
  /// Errors  ConnectionEnded.
  template <class Call>
  boost::asio::awaitable<long> ready(Call call) {
    for (;;) {
      const long result = call();
      wire_->flush();
      if (result != LIBSSH2_ERROR_EAGAIN) co_return result;
      co_await wire_->input();
    }
  }

  /// The text of libssh2's last error.
  std::string last_error() const;

  /// The reason that the other side sent when it ended the connection: "Too many authentication failures", or "".
  const std::string& farewell() const { return farewell_; }
  bool disconnected() const { return disconnected_; }  ///< the connection has ended; libssh2's results may not show it

 private:
  static ssize_t receive(libssh2_socket_t, void* data, size_t size, int, void** self);
  static ssize_t send(libssh2_socket_t, const void* data, size_t size, int, void** self);
  static void on_disconnect(LIBSSH2_SESSION*, int, const char* message, int size, const char*, int, void** self);

  std::shared_ptr<SshWire> wire_;
  LIBSSH2_SESSION* session_;
  std::string farewell_;
  bool disconnected_ = false;
  bool ending_ = false;
};

/// True if libssh2 can make signatures with RSA keys that today's servers accept (1.11 and later).
bool libssh2_has_rsa_sha2();

}  // namespace runjob
