#pragma once

#include <functional>
#include <string>

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/read.hpp>
#include <boost/asio/write.hpp>

#include "launcher/agent/probing/probe_listener.hpp"
#include "launcher/agent/probing/probe_round.hpp"

/// Hosts that try each other over loopback addresses.
namespace runjob {

inline ProbeToken token_of(char host) {
  return {std::string(ProbeToken::kBytes, host), std::string(ProbeToken::kBytes - 1, host) + "!"};
}

/// Runs the loop until `done`, which some handler sets.
inline void run_until(boost::asio::io_context& context, const bool& done) {
  context.restart();
  while (!done && context.run_one() != 0) {
  }
}

/// The outcomes of connecting to `targets`.
inline std::vector<ProbeOutcome> outcomes(boost::asio::io_context& context, std::vector<ProbeTarget> targets,
                                          std::int64_t limit_ms = 60'000) {
  bool done = false;
  ProbeResults results;
  const ProbeRound round(context.get_executor(), {std::move(targets), limit_ms}, [&](const ProbeResults& found) {
    results = found;
    done = true;
  });
  run_until(context, done);
  return results.outcomes;
}

/// A port of this machine where somebody who is none of ours is: accepts and never says a word.
class SilentPort {
 public:
  explicit SilentPort(boost::asio::io_context& context)
      : acceptor_(context, {boost::asio::ip::make_address("127.0.0.1"), 0}) {}
  int port() const { return acceptor_.local_endpoint().port(); }
  boost::asio::ip::tcp::acceptor& acceptor() { return acceptor_; }

 private:
  boost::asio::ip::tcp::acceptor acceptor_;
};

inline constexpr ProbeOutcome kReached{ProbeOutcome::Kind::kReached, 0};
inline constexpr ProbeOutcome kStranger{ProbeOutcome::Kind::kStranger, 0};
inline ProbeOutcome failed_with(int error_number) {
  return {ProbeOutcome::Kind::kFailed, error_number};
}

}  // namespace runjob
