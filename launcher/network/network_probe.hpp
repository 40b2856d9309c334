#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/steady_timer.hpp>

#include "base/status.hpp"
#include "launcher/channel/frame.hpp"
#include "launcher/network/choose_addresses.hpp"
#include "launcher/network/probe_messages.hpp"

namespace runjob {

/// One host of a job, as its agent's hello described it.
struct ProbedHost {
  std::string name;  ///< as the user spells it
  NetworkFacts facts;
  bool local = false;  ///< it is the launcher's own
};

/// Finds the address by which each host of a job is reached. All agents listen, then each connects to the candidates of
/// two others (choose_addresses.hpp). If no choice results, they try the interfaces of containers and tunnels too. A
/// job on one host needs no attempts: its address is loopback, or the best one that the filter names.
///
/// A network that is interrupted for a few seconds must not end the job. So the round is repeated for some seconds when
/// no choice results, unless each address has been refused. A host without an address besides loopback, whose cable may
/// have been out, is then asked for its networks again.
/// Threads  the executor's one thread.
class NetworkProbe {
 public:
  /// Sends a frame with `payload` to the agent of `host`.
  using Send = std::function<void(int host, ToAgent type, std::string payload)>;
  /// Called once, as the last action of start(), of on_frame() or of a handler of the loop: with the addresses by host,
  /// or with Errc::kUsage, kConnect or kTimeout and one line that names the hosts and the remedy.
  using Done = std::function<void(Status status, std::vector<HostAddress> addresses)>;

  struct Times {
    /// The probe fails when an agent has not answered within this time of a round. An agent needs at most a second for
    /// each of two steps.
    std::chrono::milliseconds patience{10'000};
    /// No round begins later than this after the first one. An interruption of three seconds is over for TCP, which
    /// repeats what is lost at growing intervals, after at most six.
    std::chrono::milliseconds repetition{8'000};
    std::chrono::milliseconds pause{500};  ///< between two rounds
  };
  NetworkProbe(const boost::asio::any_io_executor& executor, std::vector<ProbedHost> hosts,
               const InterfaceFilter& filter, Send send, Done done, Times times);

  /// `number`: among the probes of the job, in which the same agents may be asked again.
  void start(std::int64_t number = 0);
  /// Ends the probe without a result: `done` is not called any more.
  void give_up();

  /// Takes kProbeListening or kProbeResults, and drops those of another probe. Errors  Error(kProtocol) for an answer
  /// that was not asked for or does not fit.
  void on_frame(int host, ToLauncher type, std::string_view payload);

 private:
  enum class Step { kIdle, kAsking, kListening, kNetworks, kPrivate, kPausing, kDone };
  struct Host {
    ProbeToken token;
    std::vector<ProbePort> ports;  // by candidate
    std::vector<ProbeId> asked;    // the attempts that its agent makes now
    bool waited_for = false;
  };

  void choose_without_test();
  bool may_be_interrupted() const;
  void repeat_later();
  void ask_for_networks();
  void on_networks(int host, NetworkFacts facts);
  void listen();
  void on_listening(int host, ProbeListening listening);
  void on_results(int host, const ProbeResults& results);
  /// Errors  Error(kProtocol) unless the host was asked for this answer, and gave all of it.
  void check_answer(int host, bool is_of_this_step, bool is_whole);
  void end_wait(int host);
  void on_step_over();
  void connect();
  ProbeConnect connections_of(int from);
  void choose();
  void watch_patience();
  bool waits() const;
  void end_agents();
  void finish(Status status, std::vector<HostAddress> addresses);

  Host& at(int host) { return states_.at(static_cast<std::size_t>(host)); }
  const std::string& name_of(int host) const { return networks_.at(static_cast<std::size_t>(host)).host; }

  boost::asio::steady_timer timer_;  // for the agents' answers, or for the pause between two rounds
  const Times times_;
  std::chrono::steady_clock::time_point began_;
  const InterfaceFilter filter_;
  const Send send_;
  const Done done_;
  bool all_local_ = true;
  std::vector<HostNetwork> networks_;
  std::vector<Host> states_;
  ProbeOutcomes outcomes_;
  Step step_ = Step::kIdle;
  std::int64_t number_ = 0;
};

}  // namespace runjob
