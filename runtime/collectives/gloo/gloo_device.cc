#include "runtime/collectives/gloo/gloo_device.hpp"

#include <cerrno>
#include <netdb.h>
#include <stdexcept>
#include <sys/socket.h>

#include <fmt/format.h>
#include <gloo/transport/tcp/device.h>

#include "base/error.hpp"
#include "base/unique_handle.hpp"

namespace runjob::runtime {
namespace {

void check_address(const std::string& address) {
  addrinfo hints{};
  hints.ai_flags = AI_NUMERICHOST;
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* list = nullptr;
  if (::getaddrinfo(address.c_str(), nullptr, &hints, &list) != 0) {
    throw std::runtime_error(fmt::format("'{}' is no numeric address", address));
  }
  const std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> owner(list, ::freeaddrinfo);
  const UniqueFd socket(::socket(list->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (::bind(socket.get(), list->ai_addr, list->ai_addrlen) != 0) {
    throw system_error(fmt::format("listening on {}", address), errno);
  }
}

}  // namespace

std::shared_ptr<gloo::transport::Device> make_gloo_device(const std::string& bind_address) {
  check_address(bind_address);
  gloo::transport::tcp::attr attributes;
  attributes.hostname = bind_address;
  return gloo::transport::tcp::CreateDevice(attributes);
}

}  // namespace runjob::runtime
