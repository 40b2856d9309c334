#pragma once

#include <map>
#include <optional>
#include <string>

#include <boost/asio/io_context.hpp>

#include "benchmarks/rendezvous/measurement.hpp"
#include "launcher/channel/fd_channel.hpp"
#include "launcher/channel/frame_writer.hpp"
#include "launcher/channel/messages.hpp"

namespace runjob::benchmark {

/// How far all agents of a simulation have come together.
class Progress {
 public:
  explicit Progress(Size size) : size_(size) {}

  void rank_joined() { count(joined_, size_.ranks(), times_.joined); }
  void rank_passed_barrier() { count(passed_, size_.ranks(), times_.barrier_passed); }
  void leader_gathered() { count(gathered_, size_.hosts, times_.gathered); }
  /// Counts an agent that has left. Returns true for the last one.
  bool agent_left() { return ++left_ == size_.hosts; }
  bool all_gathered() const { return gathered_ == size_.hosts; }
  /// Times of the shared clock.
  const Measurement& times() const { return times_; }

 private:
  static void count(int& counter, int all, double& time) {
    if (++counter == all) time = now_seconds();
  }

  Size size_;
  int joined_ = 0, passed_ = 0, gathered_ = 0, left_ = 0;
  Measurement times_;
};

/// One agent and its ranks for the launcher: real frames on a real channel, but no processes. Each rank starts, joins
/// and enters a barrier; then the first one of the host gathers a blob from those of all hosts; then all end.
/// Threads  the loop's one thread.
class SimulatedAgent {
 public:
  SimulatedAgent(boost::asio::io_context& context, UniqueFd socket, Size size, Progress& progress);
  void start();

 private:
  boost::asio::awaitable<void> read_frames();
  void on_frame(const FrameHeader<ToAgent>& header, std::string_view payload);
  void on_launch(Launch launch);
  void on_reply(const RelayedReply& message);
  void ask(int rank, const std::string& target, std::string body);

  boost::asio::io_context& context_;
  UniqueFd input_;  // until channel_ has it
  FdChannel channel_;
  FrameWriter<ToLauncher> writer_;
  FrameParser<ToAgent> parser_;
  const Size size_;
  Progress& progress_;
  Launch launch_;
  std::map<std::int64_t, int> asked_;  // number of a request -> its rank
  std::int64_t next_request_ = 0;
  int passed_barrier_ = 0;
  bool gathering_ = false;
};

}  // namespace runjob::benchmark
