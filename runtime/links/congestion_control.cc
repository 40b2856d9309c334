#include "runtime/links/congestion_control.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <string_view>
#include <sys/socket.h>

#include "base/unique_handle.hpp"

namespace runjob::runtime {
namespace {

constexpr std::string_view kBbr = "bbr";  // the name of its second and third version begins with it as well
constexpr std::chrono::microseconds kShortRoundTrip{200};

bool set_congestion_control(int socket, std::string_view name) {
  return ::setsockopt(socket, IPPROTO_TCP, TCP_CONGESTION, name.data(), static_cast<socklen_t>(name.size())) == 0;
}

}  // namespace

void begin_without_bbr(int socket) {
  if (!congestion_control(socket).starts_with(kBbr)) return;
  static_cast<void>(set_congestion_control(socket, "cubic") || set_congestion_control(socket, "reno"));
}

void settle_congestion_control(int socket, const std::string& of_host) {
  if (of_host.starts_with(kBbr) && !has_short_round_trip(socket))
    static_cast<void>(set_congestion_control(socket, of_host));
}

std::string congestion_control_of_host() {
  const UniqueFd fresh(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  return fresh ? congestion_control(fresh.get()) : std::string();
}

std::string congestion_control(int socket) {
  std::array<char, 16> name{};  // the kernel's TCP_CA_NAME_MAX
  socklen_t length = name.size();
  if (::getsockopt(socket, IPPROTO_TCP, TCP_CONGESTION, name.data(), &length) != 0) return {};
  return {name.begin(), std::find(name.begin(), name.end(), '\0')};
}

bool has_short_round_trip(int socket) {
  tcp_info info{};
  socklen_t length = sizeof info;
  return ::getsockopt(socket, IPPROTO_TCP, TCP_INFO, &info, &length) == 0 &&
         std::chrono::microseconds(info.tcpi_min_rtt) <= kShortRoundTrip;
}

}  // namespace runjob::runtime
