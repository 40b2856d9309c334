#pragma once

#include <functional>
#include <string>
#include <vector>

#include "rendezvous/meeting_place.hpp"

namespace runjob::runtime {

/// Passes a text of this process to all processes that take part, and returns the texts of all, by rank. Each of them
/// calls it equally often, in the same order. It may be called only until the call that was given it returns, in that
/// call's thread.
/// Errors  whatever the caller's function throws.
using Exchange = std::function<std::vector<std::string>(const std::string& own)>;

/// The same exchange among `ranks` processes.
/// Errors  also Error(kProtocol), whose text begins with `what`, when it returns too few texts or too many.
Exchange counted(Exchange exchange, std::size_t ranks, std::string what);

/// A meeting place made of an exchange that the program has already: over MPI, or over the store of torch.distributed.
class ExchangeMeeting : public rendezvous::MeetingPlace {
 public:
  static constexpr char kName[] = "exchange";

  /// `host`: this host's name in messages.
  ExchangeMeeting(int rank, int size, std::string host, Exchange exchange);

  std::string name() const override { return kName; }
  /// Joins. Ranks with the same host identity are on one host.
  rendezvous::JoinReply join(std::optional<Milliseconds> timeout) override;
  /// The time limit is that of the exchange.
  /// Errors  those of counted(); Error(kProtocol) when two processes have one rank, or the texts another order.
  std::vector<std::string> gather(const std::string& name, const std::string& blob, Milliseconds timeout) override;
  /// Never called: there is no launcher.
  void on_loss(std::function<void(const Status&)> /*notify*/) override {}

 private:
  const int rank_;
  const std::string host_;
  const Exchange exchange_;
};

}  // namespace runjob::runtime
