#include "hostfile/local_host.hpp"

#include <arpa/inet.h>
#include <string>

namespace runjob {
namespace {

std::string lower(std::string_view text) {
  std::string result(text);
  for (char& c : result) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return result;
}

bool is_loopback(const std::string& name) {
  in_addr v4{};
  if (::inet_pton(AF_INET, name.c_str(), &v4) == 1) return (ntohl(v4.s_addr) >> 24) == 127;
  in6_addr v6{};
  return ::inet_pton(AF_INET6, name.c_str(), &v6) == 1 && IN6_IS_ADDR_LOOPBACK(&v6);
}

}  // namespace

bool is_this_host(const Host& host, std::string_view own_name) {
  if (!host.user.empty() || host.port) return false;
  const std::string name = lower(host.name);
  if (name == "localhost" || is_loopback(name)) return true;
  const std::string own = lower(own_name);
  if (own.empty()) return false;
  if (name == own) return true;
  // "node1" and "node1.example.org" are one host; two names with different domains are two.
  const bool one_is_short = name.find('.') == std::string::npos || own.find('.') == std::string::npos;
  return one_is_short && name.substr(0, name.find('.')) == own.substr(0, own.find('.'));
}

}  // namespace runjob
