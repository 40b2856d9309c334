#pragma once

#include <chrono>
#include <memory>
#include <set>

#include <gloo/transport/context.h>

#include "base/mutex.hpp"

namespace runjob::runtime {

/// Gloo's transport with an abort. Ending a mesh's connections is not enough: Gloo of 2022 forgets sends that stand in
/// a pair's queue when the pair fails, and waits for them until its timeout. So every buffer that a collective makes is
/// known here, and abort() ends its waits.
/// Threads  as Gloo's; abort() from any thread.
class AbortableTransport : public gloo::transport::Context {
 public:
  explicit AbortableTransport(std::shared_ptr<gloo::transport::Context> inner);

  std::unique_ptr<gloo::transport::Pair>& getPair(int rank) override;
  std::unique_ptr<gloo::transport::Pair>& createPair(int rank) override;
  std::unique_ptr<gloo::transport::UnboundBuffer> createUnboundBuffer(void* data, size_t bytes) override;

  /// Of pairs made later and of waits that begin later.
  void set_timeout(std::chrono::milliseconds timeout);

  /// From now on every wait ends with an exception.
  void abort();

 private:
  class Buffer;

  void throw_if_aborted();

  const std::shared_ptr<gloo::transport::Context> inner_;  // shared with Gloo's pairs and buffers
  Mutex mutex_;
  bool aborted_ GUARDED_BY(mutex_) = false;
  std::set<Buffer*> buffers_ GUARDED_BY(mutex_);
};

}  // namespace runjob::runtime
