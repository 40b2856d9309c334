#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <poll.h>
#include <span>
#include <string>
#include <vector>

#include "runtime/control/control_channel.hpp"
#include "runtime/engine/control_message.hpp"
#include "runtime/engine/negotiation.hpp"
#include "runtime/engine/negotiation_observer.hpp"

namespace runjob::runtime {

/// How a rank's engine takes part in negotiation, whatever carries it: says what happens here, hears what was
/// decided. Threads  the engine's only, but for messages_sent(). Nothing blocks: the engine polls the descriptors that watch() names.
class ControlPlane {
 public:
  using Clock = std::chrono::steady_clock;

  virtual ~ControlPlane() = default;
  virtual void send(const RankMessage& message) = 0;
  /// Appends what to poll.
  virtual void watch(std::vector<pollfd>& descriptors) const = 0;
  /// Handles what poll() reported on them, and the deadline when it has passed.
  virtual void on_events(std::span<const pollfd> descriptors, Clock::time_point now) = 0;
  /// When on_events() has something to do without any event; only while something is wrong.
  virtual std::optional<Clock::time_point> deadline() const = 0;
  /// What was decided since the last call, in order.
  virtual std::vector<Decision> take() = 0;
  /// The negotiation, where it is held; null elsewhere.
  virtual const Negotiation* negotiation() const { return nullptr; }

  /// How many messages have gone from here to other ranks. Any thread.
  std::uint64_t messages_sent() const { return sent_.load(std::memory_order_relaxed); }

 protected:
  void count_sent() { sent_.fetch_add(1, std::memory_order_relaxed); }

 private:
  std::atomic<std::uint64_t> sent_{0};
};

/// Rank 0's: holds the negotiation and a channel to every other rank.
class Coordinator : public ControlPlane {
 public:
  /// How long after a backend's failure the loss of a rank may still show as its cause. A dying process
  /// closes all its sockets in one go, so this is ample.
  static constexpr std::chrono::milliseconds kVerdictGrace{1000};

  /// `channels`: by rank, the first unused. `observer` may be null.
  Coordinator(Members members, std::vector<ControlChannel> channels, std::unique_ptr<NegotiationObserver> observer);

  void send(const RankMessage& message) override;
  void watch(std::vector<pollfd>& descriptors) const override;
  void on_events(std::span<const pollfd> descriptors, Clock::time_point now) override;
  std::optional<Clock::time_point> deadline() const override { return verdict_due_; }
  std::vector<Decision> take() override;
  const Negotiation* negotiation() const override { return &negotiation_; }

 private:
  void receive(int rank, const RankMessage& message);
  void tell_clock(int rank, std::int64_t asked);
  void read(int rank);
  void distribute();

  Negotiation negotiation_;
  std::vector<ControlChannel> channels_;
  std::unique_ptr<NegotiationObserver> observer_;
  std::optional<Clock::time_point> verdict_due_;
  std::vector<Decision> decisions_;
};

/// Every other rank's: one channel to rank 0.
class Member : public ControlPlane {
 public:
  /// `coordinator`: how to name rank 0 in messages: "rank 0 on s1".
  Member(ControlChannel channel, std::string coordinator);

  void send(const RankMessage& message) override;
  void watch(std::vector<pollfd>& descriptors) const override;
  void on_events(std::span<const pollfd> descriptors, Clock::time_point now) override;
  std::optional<Clock::time_point> deadline() const override { return std::nullopt; }
  std::vector<Decision> take() override;

 private:
  void coordinator_lost();

  ControlChannel channel_;
  std::string coordinator_;
  bool over_ = false;     ///< the end of the job was decided
  bool leaving_ = false;  ///< some rank has said goodbye
  std::vector<Decision> decisions_;
};

}  // namespace runjob::runtime
