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
#include "runtime/life/job_life.hpp"
#include "runtime/life/life_message.hpp"
#include "runtime/life/trace_receiver.hpp"

namespace runjob::runtime {

/// A rank's connection to the life of the job: sends the reports of this rank, and receives the decisions.
/// Owner    the channels. The caller polls their descriptors, which watch() names.
/// Threads  one, but messages_sent() from any. Nothing blocks.
/// Errors   none is thrown. A channel that breaks, or whose bytes are no message, is a lost rank. The coordinator
///          decides on it; a member that has lost the coordinator decides for itself.
class ControlPlane {
 public:
  using Clock = std::chrono::steady_clock;

  virtual ~ControlPlane() = default;
  /// Queues the report for the coordinator; on rank 0 it is decided on at once.
  virtual void send(const LifeReport& report) = 0;
  /// Appends the descriptors to poll.
  virtual void watch(std::vector<pollfd>& descriptors) const = 0;
  /// Handles the events that poll() reported on them, and the deadline when it has passed.
  virtual void on_events(std::span<const pollfd> descriptors, Clock::time_point now) = 0;
  /// The time at which on_events() is due without any event; only while a failure waits for its cause.
  virtual std::optional<Clock::time_point> deadline() const = 0;
  /// The decisions since the last call, in order.
  virtual std::vector<LifeDecision> take() = 0;
  /// As ControlChannel's, of any channel.
  virtual bool has_unacknowledged() const = 0;

  /// The number of messages that this rank has sent to other ranks. Any thread.
  std::uint64_t messages_sent() const { return sent_.load(std::memory_order_relaxed); }

 protected:
  void count_sent() { sent_.fetch_add(1, std::memory_order_relaxed); }

 private:
  std::atomic<std::uint64_t> sent_{0};
};

/// The control plane of rank 0: holds the JobLife and a channel to every other rank.
class Coordinator : public ControlPlane {
 public:
  /// The time after a backend's failure during which the loss of a rank may still show as its cause. A dying process
  /// closes all its sockets in one go, so this is ample.
  static constexpr std::chrono::milliseconds kVerdictGrace{1000};

  /// `channels`: by rank, the first unused. `trace` may be null.
  Coordinator(Members members, std::vector<ControlChannel> channels, std::unique_ptr<TraceReceiver> trace);

  void send(const LifeReport& report) override;
  void watch(std::vector<pollfd>& descriptors) const override;
  void on_events(std::span<const pollfd> descriptors, Clock::time_point now) override;
  std::optional<Clock::time_point> deadline() const override { return verdict_due_; }
  std::vector<LifeDecision> take() override;
  bool has_unacknowledged() const override;

 private:
  void receive(int rank, const LifeReport& report);
  void answer_clock(int rank, std::int64_t asked);
  void read(int rank);
  void distribute();

  const Members members_;
  JobLife life_;
  std::vector<ControlChannel> channels_;
  std::unique_ptr<TraceReceiver> trace_;
  std::optional<Clock::time_point> verdict_due_;
  std::vector<LifeDecision> decisions_;
};

/// The control plane of every other rank: one channel to rank 0.
class Member : public ControlPlane {
 public:
  /// The time after this rank has reported a failure during which the coordinator has to decide. After it the rank
  /// decides for itself: the network to the coordinator may be what has failed.
  static constexpr std::chrono::milliseconds kDecisionLimit = 2 * Coordinator::kVerdictGrace;

  /// `coordinator`: the name of rank 0 in messages: "rank 0 on s1".
  Member(ControlChannel channel, std::string coordinator);

  void send(const LifeReport& report) override;
  void watch(std::vector<pollfd>& descriptors) const override;
  void on_events(std::span<const pollfd> descriptors, Clock::time_point now) override;
  std::optional<Clock::time_point> deadline() const override { return decision_due_; }
  std::vector<LifeDecision> take() override;
  bool has_unacknowledged() const override { return channel_.has_unacknowledged(); }

 private:
  void decide_alone(Clock::time_point now);
  void note(LifeDecision decision);
  void coordinator_lost();

  ControlChannel channel_;
  std::string coordinator_;
  bool is_over_ = false;     ///< the end of the job was decided
  bool is_leaving_ = false;  ///< some rank has sent a goodbye
  Status failure_;           ///< the first one that this rank has reported
  int late_ = -1;            ///< with a stall: the rank that the operation waits for
  std::optional<Clock::time_point> decision_due_;
  std::vector<LifeDecision> decisions_;
};

}  // namespace runjob::runtime
