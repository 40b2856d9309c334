#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <gloo/context.h>
#include <gloo/transport/device.h>

#include "runtime/collectives/gloo/abortable_transport.hpp"
#include "runtime/collectives/gloo/socket_shutdown.hpp"

namespace runjob::runtime {

/// A full mesh of Gloo's TCP pairs whose addresses are exchanged by us, in one step, instead of through a
/// Gloo store. Errors  what Gloo throws: std::exception.
class GlooContext : public gloo::Context {
 public:
  /// Makes a pair, and with it a listening socket, for every other rank.
  GlooContext(int own_rank, int rank_count, std::shared_ptr<gloo::transport::Device> device,
              std::chrono::milliseconds connect_timeout);

  /// How errors call the ranks; empty: by their numbers here.
  void set_names(std::vector<int> names) { names_ = std::move(names); }

  /// This rank's addresses, one for each other rank, as bytes.
  std::string addresses() const;

  /// Connects every pair. `addresses`: those of every rank, by rank.
  void connect(const std::vector<std::string>& addresses);

  /// From now on collectives wait so long for data.
  void set_operation_timeout(std::chrono::milliseconds timeout);

  /// Ends every wait of a collective, now and later, with an exception. Any thread.
  void abort_waits() { transport_->abort(); }

  /// Where this rank's pairs listen, or did before they were connected.
  std::vector<Endpoint> own_endpoints() const;
  /// Where the other ends of this rank's pairs do.
  std::vector<Endpoint> peer_endpoints(const std::vector<std::string>& addresses) const;

 private:
  std::string address_for(int peer, const std::string& addresses) const;

  std::vector<int> names_;
  std::shared_ptr<AbortableTransport> transport_;  // the base class's transportContext_, in its own type
};

}  // namespace runjob::runtime
