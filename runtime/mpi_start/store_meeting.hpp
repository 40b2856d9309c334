#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "runtime/mpi_start/foreign_launcher.hpp"
#include "runtime/mpi_start/key_store.hpp"
#include "runtime/mpi_start/meeting_place.hpp"

namespace runjob::runtime {

/// A meeting place made of another launcher's key store, without a server of ours.
class StoreMeeting : public MeetingPlace {
 public:
  static constexpr char kName[] = "key store";

  /// `round`: how many meetings this process has had there before, the same on all ranks, since what has been put stays.
  StoreMeeting(const ForeignLauncher& launcher, KeyStore& store, int round);

  std::string name() const override { return kName; }
  /// Whoever has the same host identity is on one host.
  rendezvous::JoinReply join(std::optional<Milliseconds> timeout) override;
  std::vector<std::string> gather(const std::string& name, const std::string& blob, Milliseconds timeout) override;
  void on_loss(std::function<void(const Status&)> tell) override { store_.on_loss(std::move(tell)); }

 private:
  std::string missing(const std::string& key) const;

  ForeignLauncher launcher_;
  KeyStore& store_;
  int round_;
};

/// The place of rank `rank`, when `identities` and `names` are those of the ranks' hosts, by rank. Pure.
rendezvous::JoinReply place_among(int rank, const std::vector<std::string>& identities,
                                  const std::vector<std::string>& names);

}  // namespace runjob::runtime
