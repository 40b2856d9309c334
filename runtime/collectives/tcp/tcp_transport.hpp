#pragma once

#include <atomic>
#include <chrono>
#include <map>
#include <memory>
#include <poll.h>
#include <string>
#include <vector>

#include "base/event_fd.hpp"
#include "runtime/collectives/shm/tuning/spin_time.hpp"
#include "runtime/collectives/tcp/tcp_link.hpp"
#include "runtime/collectives/transport.hpp"
#include "runtime/links/listener.hpp"

namespace runjob::runtime {

/// Messages over one TCP connection with each peer. The caller moves all bytes itself, in its calls: there is no thread
/// and no copy between its memory and the kernel. Whatever it waits for, all its connections move on meanwhile.
///
/// Key      each member's address has 32 random bytes. The mesh's key is made of those of all members and of the job's
///          key. Where the addresses travel in secret (a Unix socket, SSH), this is enough; where they do not (HTTP),
///          the job's key keeps the secret. Each connection proves the key (handshake.hpp). The listener is closed
///          once all are connected.
/// Losses   a connection that ends is an error at once. A busy one whose other host acknowledges nothing is one after
///          SilenceWatch::kLimit, with the host's address and the interface. A peer that is stopped, or computes with
///          full buffers, is none until the operation's time limit.
/// Threads  one caller at a time, but abort() from any thread.
class TcpTransport : public Transport {
 public:
  /// Errors  Error(kConnect): this member cannot listen at its address.
  explicit TcpTransport(const TransportOptions& options);
  ~TcpTransport() override;

  std::string address() const override;
  Status connect(const std::vector<std::string>& addresses) override;
  void spin_for(std::chrono::microseconds most) override { spin_ = SpinTime(most); }
  void count_moves_in(std::atomic<std::uint64_t>& moves) override { moves_ = &moves; }
  Status send_short(int peer, const void* data, std::size_t bytes) override;
  Status receive_short(int peer, void* data, std::size_t bytes) override;
  Status flush() override;
  void set_one_way(int peer, bool is_one_way) override;
  std::unique_ptr<TransportBuffer> buffer(void* data, std::size_t bytes) override;
  bool move() override;
  void pause(std::chrono::microseconds most) override;
  void abort() override;
  int lost_rank() const override { return lost_rank_; }

 private:
  using Clock = std::chrono::steady_clock;
  class Buffer;
  struct Peer;

  void connect_all(const std::vector<std::string>& addresses);
  template <class Action>
  Status guarded(Action action);
  void wait(int peer, const LinkRequest& request);
  template <class IsOver>
  void wait_until(int peer, IsOver is_over);
  std::size_t move_all();
  void sleep(Clock::time_point deadline);
  void throw_if_unusable() const;
  void shut_down() const;
  Peer& peer(int member) { return *peers_.at(member); }

  const TransportOptions options_;
  Listener listener_;
  std::map<int, std::unique_ptr<Peer>> peers_;  ///< by member
  std::vector<pollfd> events_;                  ///< of sleep()
  Clock::time_point next_look_;                 ///< at the busy connections, for silent peers
  SpinTime spin_{Clock::duration::zero()};
  std::atomic<std::uint64_t>* moves_ = nullptr;  ///< lent; null: nobody looks
  Status failure_;
  EventFd wake_;  ///< set by abort()
  std::atomic<bool> connected_{false}, aborted_{false};
  std::atomic<int> lost_rank_{-1};
};

}  // namespace runjob::runtime
