#include "runtime/collectives/gloo/abortable_transport.hpp"

#include <stdexcept>
#include <utility>

#include <gloo/transport/unbound_buffer.h>

namespace runjob::runtime {

/// A buffer of Gloo's whose waits throw after an abort. Gloo only lets them return false, which its collectives ignore.
class AbortableTransport::Buffer : public gloo::transport::UnboundBuffer {
 public:
  Buffer(AbortableTransport& transport, std::unique_ptr<UnboundBuffer> inner)
      : UnboundBuffer(inner->ptr, inner->size), transport_(transport), inner_(std::move(inner)) {
    const MutexLock lock(transport_.mutex_);
    transport_.buffers_.insert(this);
  }
  ~Buffer() override {
    const MutexLock lock(transport_.mutex_);
    transport_.buffers_.erase(this);
  }
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;

  bool waitRecv(int* rank, std::chrono::milliseconds timeout) override {
    transport_.throw_if_aborted();
    return inner_->waitRecv(rank, timeout) || aborted();
  }
  bool waitSend(int* rank, std::chrono::milliseconds timeout) override {
    transport_.throw_if_aborted();  // an abort after this is remembered by the buffer: the wait returns at once
    return inner_->waitSend(rank, timeout) || aborted();
  }
  void abortWaitRecv() override { inner_->abortWaitRecv(); }
  void abortWaitSend() override { inner_->abortWaitSend(); }

  void send(int rank, uint64_t tag, size_t offset, size_t bytes) override { inner_->send(rank, tag, offset, bytes); }
  void recv(int rank, uint64_t tag, size_t offset, size_t bytes) override { inner_->recv(rank, tag, offset, bytes); }
  void recv(std::vector<int> ranks, uint64_t tag, size_t offset, size_t bytes) override {
    inner_->recv(std::move(ranks), tag, offset, bytes);
  }

 private:
  [[noreturn]] static bool aborted() { throw std::runtime_error("aborted"); }

  AbortableTransport& transport_;
  const std::unique_ptr<UnboundBuffer> inner_;
};

AbortableTransport::AbortableTransport(std::shared_ptr<gloo::transport::Context> inner)
    : gloo::transport::Context(inner->rank, inner->size), inner_(std::move(inner)) {}

std::unique_ptr<gloo::transport::Pair>& AbortableTransport::getPair(int peer) {
  return inner_->getPair(peer);
}

std::unique_ptr<gloo::transport::Pair>& AbortableTransport::createPair(int peer) {
  return inner_->createPair(peer);
}

std::unique_ptr<gloo::transport::UnboundBuffer> AbortableTransport::createUnboundBuffer(void* data, size_t bytes) {
  return std::make_unique<Buffer>(*this, inner_->createUnboundBuffer(data, bytes));
}

void AbortableTransport::set_timeout(std::chrono::milliseconds timeout) {
  setTimeout(timeout);
  inner_->setTimeout(timeout);
}

void AbortableTransport::abort() {
  const MutexLock lock(mutex_);
  aborted_ = true;
  for (Buffer* buffer : buffers_) {
    buffer->abortWaitRecv();
    buffer->abortWaitSend();
  }
}

void AbortableTransport::throw_if_aborted() {
  const MutexLock lock(mutex_);
  if (aborted_) throw std::runtime_error("aborted");
}

}  // namespace runjob::runtime
