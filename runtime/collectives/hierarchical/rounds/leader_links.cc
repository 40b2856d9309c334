#include "runtime/collectives/hierarchical/rounds/leader_links.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>
#include <cstring>
#include <poll.h>
#include <sys/epoll.h>

#include "base/error.hpp"

namespace runjob::runtime {
namespace {

using Words = std::array<std::uint32_t, 2>;

/// About as long as TcpLink's, for the same reason. With the length of the frame and what precedes the data of the
/// first message in a block, it takes 128 bytes, so that these data are aligned where the frame is.
struct Header {
  std::uint32_t type;
  Words round;
  std::array<std::uint32_t, 26> unused;
};
static_assert(sizeof(Header) == 116);

}  // namespace

LeaderLinks::LeaderLinks(std::vector<ControlChannel> channels)
    : channels_(std::move(channels)),
      watches_(channels_.size()),
      polled_(channels_.size()),
      poll_(::epoll_create1(EPOLL_CLOEXEC)) {
  if (!poll_) throw system_error("epoll_create1", errno);
  for (std::size_t host = 0; host < channels_.size(); ++host) watch(host);
}

void LeaderLinks::send(int host, const Frame& frame, std::string_view more) {
  ControlChannel& channel = channels_[static_cast<std::size_t>(host)];
  if (!channel.is_open()) return;
  const Header header{static_cast<std::uint32_t>(frame.type), std::bit_cast<Words>(frame.round), {}};
  channel.send({{{reinterpret_cast<const char*>(&header), sizeof header}, frame.payload, more}});
  watch(static_cast<std::size_t>(host));
  ++messages_;
  bytes_ += sizeof header + frame.payload.size() + more.size();
}

void LeaderLinks::send_to_all(const Frame& frame) {
  for (std::size_t host = 0; host < channels_.size(); ++host) send(static_cast<int>(host), frame);
}

void LeaderLinks::receive(const OnFrame& on_frame, const OnEnd& on_end) {
  std::array<epoll_event, 64> events;
  for (;;) {
    const int count = ::epoll_wait(poll_.get(), events.data(), static_cast<int>(events.size()), 0);
    for (int i = 0; i < count; ++i) {
      const std::size_t host = events[static_cast<std::size_t>(i)].data.u64;
      ControlChannel& channel = channels_[host];
      if ((events[static_cast<std::size_t>(i)].events & EPOLLOUT) != 0) channel.flush();
      read(host, on_frame, on_end);
    }
    if (count < static_cast<int>(events.size())) return;
  }
}

void LeaderLinks::receive_from(int host, const OnFrame& on_frame, const OnEnd& on_end) {
  const auto index = static_cast<std::size_t>(host);
  if (!channels_[index].is_open()) return;
  channels_[index].flush();
  read(index, on_frame, on_end);
}

void LeaderLinks::read(std::size_t host, const OnFrame& on_frame, const OnEnd& on_end) {
  ControlChannel& channel = channels_[host];
  channel.receive();
  while (const auto bytes = channel.next_frame()) {
    Header header;
    if (bytes->size() < sizeof header) {
      channel.close();
      break;
    }
    std::memcpy(&header, bytes->data(), sizeof header);
    on_frame(static_cast<int>(host), {static_cast<Type>(header.type), std::bit_cast<std::uint64_t>(header.round),
                                      bytes->substr(sizeof header)});
  }
  if (!channel.is_open()) return on_end(static_cast<int>(host));
  watch(host);
}

void LeaderLinks::find_silent(SilenceWatch::Clock::time_point now, const OnSilence& on_silence) {
  for (std::size_t host = 0; host < channels_.size(); ++host) {
    if (!channels_[host].is_open()) continue;
    const std::optional<std::string> reason = find_silence(watches_[host], channels_[host].fd(), now);
    if (reason) on_silence(static_cast<int>(host), *reason);
  }
}

bool LeaderLinks::has_unacknowledged() const {
  return std::any_of(channels_.begin(), channels_.end(),
                     [](const ControlChannel& channel) { return channel.has_unacknowledged(); });
}

void LeaderLinks::close() {
  for (ControlChannel& channel : channels_) channel.close();
}

/// Polls for what the channel wants.
void LeaderLinks::watch(std::size_t host) {
  const ControlChannel& channel = channels_[host];
  if (!channel.is_open() || polled_[host] == channel.poll_events()) return;
  epoll_event event{};
  event.events = static_cast<std::uint32_t>(channel.poll_events());  // poll()'s bits are epoll's
  event.data.u64 = host;
  const int what = polled_[host] == 0 ? EPOLL_CTL_ADD : EPOLL_CTL_MOD;
  if (::epoll_ctl(poll_.get(), what, channel.fd(), &event) != 0) throw system_error("epoll_ctl", errno);
  polled_[host] = channel.poll_events();
}

}  // namespace runjob::runtime
