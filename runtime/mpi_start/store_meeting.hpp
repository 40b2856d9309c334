#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "rendezvous/meeting_place.hpp"
#include "runtime/mpi_start/foreign_launcher.hpp"
#include "runtime/mpi_start/key_store.hpp"

namespace runjob::runtime {

/// A meeting place made of another launcher's key store. It needs no server of runjob.
class StoreMeeting : public rendezvous::MeetingPlace {
 public:
  static constexpr char kName[] = "key store";

  /// `round` is the number of earlier meetings of this process there, the same on all ranks. It is part of the keys,
  /// because stored values stay.
  StoreMeeting(const ForeignLauncher& launcher, KeyStore& store, int round);

  std::string name() const override { return kName; }
  /// Joins. Ranks with the same host identity are on one host.
  rendezvous::JoinReply join(std::optional<Milliseconds> timeout) override;
  std::vector<std::string> gather(const std::string& name, const std::string& blob, Milliseconds timeout) override;
  void on_loss(std::function<void(const Status&)> notify) override { store_.on_loss(std::move(notify)); }

 private:
  std::string missing(const std::string& key) const;

  ForeignLauncher launcher_;
  KeyStore& store_;
  int round_;
};

/// The longest wait for the other ranks, which may need some time to start in a batch system.
constexpr std::chrono::seconds kStoreTimeout{120};

/// The text about its host that a rank gives the others when they meet. `name`: the host's name in messages.
/// Errors  Error(kUnavailable), as host_identity().
std::string own_host_text(const std::string& name);
/// The place of rank `rank` among ranks that have given each other `texts`, by rank. Pure.
rendezvous::JoinReply place_in_store(int rank, const std::vector<std::string>& texts,
                                     std::chrono::milliseconds timeout);

/// The local and cross ranks of rank `rank`. `identities` and `names` are those of the ranks' hosts, by rank. Pure.
rendezvous::JoinReply place_among(int rank, const std::vector<std::string>& identities,
                                  const std::vector<std::string>& names);

}  // namespace runjob::runtime
