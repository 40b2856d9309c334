#include "runtime/links/listener.hpp"

#include <algorithm>
#include <cerrno>
#include <netinet/in.h>
#include <sys/socket.h>

#include <fmt/format.h>

#include "base/error.hpp"
#include "runtime/links/congestion_control.hpp"
#include "runtime/links/numeric_address.hpp"

namespace runjob::runtime {
namespace {

constexpr int kLongQueue = 1024;  // strangers that connect before the members do must not fill it

[[noreturn]] void fail(const std::string& what, int error_number) {
  throw Error(Errc::kConnect, system_error(what, error_number).what());
}

}  // namespace

Listener listen_for_members(const std::string& address, int size) {
  const AddressList list = parse_address(address, 0);
  Listener listener;
  listener.socket.reset(::socket(list->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  const int fd = listener.socket.get();
  if (fd < 0) fail("making a socket", errno);
  begin_without_bbr(fd);
  if (::bind(fd, list->ai_addr, list->ai_addrlen) != 0 || ::listen(fd, std::max(size + 16, kLongQueue)) != 0) {
    fail(fmt::format("listening on {}", address), errno);
  }
  sockaddr_storage bound{};
  socklen_t length = sizeof bound;
  if (::getsockname(fd, reinterpret_cast<sockaddr*>(&bound), &length) != 0) fail("getsockname", errno);
  char port[NI_MAXSERV];
  ::getnameinfo(reinterpret_cast<sockaddr*>(&bound), length, nullptr, 0, port, sizeof port, NI_NUMERICSERV);
  listener.address = {address, static_cast<std::uint16_t>(std::stoi(port)), rendezvous::random_nonce()};
  return listener;
}

}  // namespace runjob::runtime
