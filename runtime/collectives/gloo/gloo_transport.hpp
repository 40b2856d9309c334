#pragma once

#include <map>
#include <memory>

#include <gloo/transport/buffer.h>
#include <gloo/transport/device.h>

#include "base/mutex.hpp"
#include "base/unique_handle.hpp"
#include "runtime/collectives/gloo/abortable_transport.hpp"
#include "runtime/collectives/gloo/socket_shutdown.hpp"
#include "runtime/collectives/transport.hpp"

namespace runjob::runtime {

/// Messages over Gloo's TCP pairs, in two ways.
///
/// Short  pairs of their own, whose buffers are registered at both ends (bound) and which are read by the thread that waits
///        (sync): one packet each way and no other thread. Before Gloo reads, it is waited here until there is something, so
///        that looking, sleeping, the time limit and the abort are ours.
/// Long   unbound buffers: Gloo's own thread moves the bytes, so they flow while the caller does something else.
///
/// Threads  the calling one has SIGPIPE blocked, since Gloo writes without MSG_NOSIGNAL.
class GlooTransport : public Transport {
 public:
  /// Errors  what Gloo throws: std::exception.
  explicit GlooTransport(const TransportOptions& options);
  ~GlooTransport() override;

  std::string address() const override { return address_; }
  Status connect(const std::vector<std::string>& addresses) override;
  Status send_short(int peer, const void* data, std::size_t bytes) override;
  Status receive_short(int peer, void* data, std::size_t bytes) override;
  std::unique_ptr<TransportBuffer> buffer(void* data, std::size_t bytes) override;
  void abort() override;

 private:
  class LongBuffer;

  /// One peer's end of the short way.
  struct Mailbox {
    std::unique_ptr<std::byte[]> memory;
    std::unique_ptr<gloo::transport::Buffer> outgoing, incoming;
    UniqueFd socket;  ///< a duplicate of the pair's; none when it could not be found
  };

  void connect_pairs(const std::vector<std::string>& addresses);
  Status greet();
  void open_mailbox(int peer, const std::vector<std::string>& addresses);
  /// Runs `action`; what it throws becomes a Status that names `peer`.
  template <class Action>
  Status guarded(int peer, Action action) const;
  Status wait_readable(int peer, int socket);
  std::string name(int peer) const;

  const TransportOptions options_;
  std::chrono::nanoseconds spin_;                            ///< of the next wait
  std::shared_ptr<gloo::transport::Device> device_;          // shared with Gloo's pairs
  std::shared_ptr<gloo::transport::Context> short_context_;  // shared with Gloo's pairs
  std::shared_ptr<AbortableTransport> long_context_;         // shared with the buffers
  std::string address_;
  std::map<int, Mailbox> mailboxes_;  ///< by peer

  mutable Mutex mutex_;
  bool aborted_ GUARDED_BY(mutex_) = false;
  std::vector<Endpoint> own_ GUARDED_BY(mutex_), peers_ GUARDED_BY(mutex_);  ///< of all connections
};

}  // namespace runjob::runtime
