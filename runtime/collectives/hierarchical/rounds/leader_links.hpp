#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/unique_handle.hpp"
#include "runtime/control/control_channel.hpp"
#include "runtime/links/silence_watch.hpp"

namespace runjob::runtime {

/// One leader's connections to the leaders of all other hosts, and the frames on them. No call waits.
/// Owner    the connections.
/// Threads  one at a time.
/// Errors   OnEnd is called for a connection that ends, after OnFrame for each frame that came before.
class LeaderLinks {
 public:
  enum class Type : std::uint32_t {
    kBlocks,   ///< the blocks of `round`: the sender's and those of the hosts behind it
    kBegun,    ///< a host has begun `round`
    kAsk,      ///< the state of the ranks of the sender's host in `round` (Attendance); asks for the same
    kPresent,  ///< the answer
    kLeft,     ///< a rank of the sender's host takes no part any more, after `round`
  };
  struct Frame {
    Type type;
    std::uint64_t round;
    std::string_view payload;  ///< valid only during the call of OnFrame
  };

  /// `channels`: by host; that of the own host is unused.
  explicit LeaderLinks(std::vector<ControlChannel> channels);

  /// Readable when receive() has something to do: for poll() and its kind.
  int descriptor() const { return poll_.get(); }
  /// `more`: the rest of the payload, if that is in two parts.
  void send(int host, const Frame& frame, std::string_view more = {});
  /// Sends to all hosts whose connections are open.
  void send_to_all(const Frame& frame);
  /// The error that has ended the connection to `host`; 0 if that host has closed it.
  int error(int host) const { return channels_[static_cast<std::size_t>(host)].error(); }
  /// Why this end has closed the connection, if it has: see ControlChannel.
  const std::string& refusal(int host) const { return channels_[static_cast<std::size_t>(host)].refusal(); }
  bool is_open(int host) const { return channels_[static_cast<std::size_t>(host)].is_open(); }

  using OnFrame = std::function<void(int host, const Frame& frame)>;
  using OnEnd = std::function<void(int host)>;
  /// Receives everything that has come.
  void receive(const OnFrame& on_frame, const OnEnd& on_end);
  /// Receives everything that has come from one host, with one system call when nothing has.
  void receive_from(int host, const OnFrame& on_frame, const OnEnd& on_end);
  /// To be called by OnFrame: the payload stays valid until the next call with the same memory. See ControlChannel.
  void keep_frame(int host, ControlChannel::Memory& memory) {
    channels_[static_cast<std::size_t>(host)].keep_frames(memory);
  }

  /// As ControlChannel's, of any connection.
  bool has_unacknowledged() const;

  using OnSilence = std::function<void(int host, const std::string& reason)>;
  /// Looks at all connections, and calls `on_silence` for each host that is out of reach.
  void find_silent(SilenceWatch::Clock::time_point now, const OnSilence& on_silence);

  /// Ends all connections. The hosts at their other ends notice it. OnEnd is not called for them.
  void close();

  // So far.
  std::uint64_t messages_sent() const { return messages_; }
  std::uint64_t bytes_sent() const { return bytes_; }

 private:
  void read(std::size_t host, const OnFrame& on_frame, const OnEnd& on_end);
  void watch(std::size_t host);

  std::vector<ControlChannel> channels_;
  std::vector<SilenceWatch> watches_;  ///< by host
  std::vector<short> polled_;          ///< for what, by host
  UniqueFd poll_;                      ///< an epoll of all connections
  std::uint64_t messages_ = 0, bytes_ = 0;
};

}  // namespace runjob::runtime
