#pragma once

#include <chrono>
#include <optional>
#include <string>

namespace runjob::runtime {

/// The kernel's account of the acknowledgements of one TCP connection, at one moment.
struct TcpProgress {
  bool has_data_out = false;                        ///< data have left that the other host has not acknowledged
  bool has_probes_out = false;                      ///< a keep-alive or window probe has left that it has not answered
  std::chrono::milliseconds since_sent{0};          ///< since data left for the last time, also again
  std::chrono::milliseconds since_acknowledged{0};  ///< since the last acknowledgement came
  bool has_unsent = false;                          ///< data have not left yet

  /// True while the other host owes an acknowledgement of what left after its last one.
  bool is_unanswered() const { return has_probes_out || (has_data_out && since_sent < since_acknowledged); }
};

/// Nullopt for a socket that is not TCP's.
std::optional<TcpProgress> tcp_progress(int socket);

/// Decides whether the other host of a busy connection is out of reach: it has acknowledged nothing for `limit`,
/// although data or probes were out for all of that time. The kernel of a living host acknowledges at once, also for a
/// process that is stopped or does not read: its full buffers are no silence. TCP_USER_TIMEOUT would end such a
/// connection. Pure.
/// Threads  one.
class SilenceWatch {
 public:
  using Clock = std::chrono::steady_clock;

  /// How often look() is to be called while the connection is busy.
  static constexpr std::chrono::milliseconds kLookEvery{250};
  static constexpr std::chrono::seconds kLimit{5};

  explicit SilenceWatch(std::chrono::milliseconds limit = kLimit) : limit_(limit) {}

  /// True when the other host is out of reach. Time in which nobody has looked does not count.
  bool look(const TcpProgress& progress, Clock::time_point now);
  std::chrono::milliseconds limit() const { return limit_; }

 private:
  /// The longest time between two looks of which the second one continues the first one's account.
  static constexpr Clock::duration kLongestGap = 8 * kLookEvery;

  std::chrono::milliseconds limit_;
  std::optional<Clock::time_point> unanswered_since_;
  Clock::time_point last_look_;
};

/// Looks at a link. The reason, with the other host's address and the interface, when that host is out of reach.
std::optional<std::string> find_silence(SilenceWatch& watch, int socket, SilenceWatch::Clock::time_point now);

}  // namespace runjob::runtime
