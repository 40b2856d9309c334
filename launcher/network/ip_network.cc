#include "launcher/network/ip_network.hpp"

#include <algorithm>

#include <boost/asio/ip/address.hpp>
#include <boost/asio/ip/network_v4.hpp>
#include <boost/asio/ip/network_v6.hpp>

namespace runjob {
namespace {

namespace ip = boost::asio::ip;

constexpr int kIpv4Bits = 32, kIpv6Bits = 128;

/// Asio also accepts a scope behind '%', which only its own host can interpret.
std::optional<ip::address> parse(const std::string& text) {
  if (text.find('%') != std::string::npos) return std::nullopt;
  boost::system::error_code error;
  const ip::address address = ip::make_address(text, error);
  if (error) return std::nullopt;
  return address;
}

bool is_ipv4_link_local(const ip::address_v4& address) {
  return ip::network_v4(address, 16).canonical() == ip::network_v4(ip::address_v4(0xa9fe0000), 16);
}

}  // namespace

bool is_ip_address(const std::string& text) {
  return parse(text).has_value();
}

bool is_ipv6_address(const std::string& text) {
  const auto address = parse(text);
  return address && address->is_v6();
}

bool is_loopback_address(const std::string& text) {
  const auto address = parse(text);
  return address && address->is_loopback();
}

bool is_link_local_address(const std::string& text) {
  const auto address = parse(text);
  if (!address) return false;
  return address->is_v6() ? address->to_v6().is_link_local() : is_ipv4_link_local(address->to_v4());
}

std::optional<std::string> network_of(const std::string& text, int prefix_length) {
  const auto address = parse(text);
  if (!address || prefix_length < 0 || prefix_length > address_bits(text)) return std::nullopt;
  const auto length = static_cast<unsigned short>(prefix_length);
  if (address->is_v4()) return ip::network_v4(address->to_v4(), length).canonical().to_string();
  return ip::network_v6(address->to_v6(), length).canonical().to_string();
}

int address_bits(const std::string& address) {
  return is_ipv6_address(address) ? kIpv6Bits : kIpv4Bits;
}

}  // namespace runjob
