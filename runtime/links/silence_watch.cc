#include "runtime/links/silence_watch.hpp"

#include <algorithm>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <fmt/format.h>

#include "runtime/links/local_interface.hpp"
#include "runtime/links/numeric_address.hpp"

namespace runjob::runtime {

std::optional<TcpProgress> tcp_progress(int socket) {
  tcp_info info{};
  socklen_t length = sizeof info;
  if (::getsockopt(socket, IPPROTO_TCP, TCP_INFO, &info, &length) != 0) return std::nullopt;
  return TcpProgress{info.tcpi_unacked > 0, info.tcpi_probes > 0, std::chrono::milliseconds(info.tcpi_last_data_sent),
                     std::chrono::milliseconds(info.tcpi_last_ack_recv), info.tcpi_notsent_bytes > 0};
}

bool SilenceWatch::look(const TcpProgress& progress, Clock::time_point now) {
  const bool was_away = now - last_look_ > kLongestGap;
  last_look_ = now;
  if (!progress.is_unanswered()) {
    unanswered_since_.reset();
    return false;
  }
  if (!unanswered_since_ || was_away) unanswered_since_ = now;
  return std::min<Clock::duration>(progress.since_acknowledged, now - *unanswered_since_) >= limit_;
}

std::optional<std::string> find_silence(SilenceWatch& watch, int socket, SilenceWatch::Clock::time_point now) {
  const std::optional<TcpProgress> progress = tcp_progress(socket);
  if (!progress || !watch.look(*progress, now)) return std::nullopt;
  return fmt::format(
      "its host {} has acknowledged nothing for {:.3g} s over {}; the network between the hosts is cut, or that host "
      "is down",
      peer_address(socket), std::chrono::duration<double>(watch.limit()).count(), local_interface(socket));
}

}  // namespace runjob::runtime
