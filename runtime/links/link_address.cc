#include "runtime/links/link_address.hpp"

#include <cstring>

#include <fmt/format.h>

#include "base/error.hpp"

namespace runjob::runtime {
namespace {

constexpr std::size_t kFixedBytes = sizeof LinkAddress::port + sizeof LinkAddress::nonce;

}  // namespace

std::string encode(const LinkAddress& address) {
  std::string bytes(kFixedBytes, '\0');
  std::memcpy(bytes.data(), &address.port, sizeof address.port);  // little-endian, as the job's tensors are
  std::memcpy(bytes.data() + sizeof address.port, address.nonce.data(), sizeof address.nonce);
  return bytes + address.address;
}

LinkAddress decode_link_address(const std::string& bytes, const std::string& whose) {
  if (bytes.size() <= kFixedBytes) throw Error(Errc::kProtocol, fmt::format("the address of {} is cut", whose));
  LinkAddress address;
  std::memcpy(&address.port, bytes.data(), sizeof address.port);
  std::memcpy(address.nonce.data(), bytes.data() + sizeof address.port, sizeof address.nonce);
  address.address = bytes.substr(kFixedBytes);
  return address;
}

}  // namespace runjob::runtime
