#pragma once

#include <condition_variable>
#include <cstring>
#include <deque>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "runtime/collectives/transport.hpp"

/// A transport among threads of this process. Long messages are copied when both sides have come, out of the sender's
/// memory into the receiver's: whoever changes either too early is seen by ThreadSanitizer, and by the results.
namespace runjob::runtime {

/// What the members of one group have between them.
class ThreadNetwork {
 public:
  void end() {
    const std::lock_guard lock(mutex_);
    ended_ = true;
    changed_.notify_all();
  }

 private:
  friend class ThreadTransport;

  struct Side {
    std::byte* data;
    std::size_t bytes;
    bool* done;
  };
  using Key = std::tuple<int, int, std::uint64_t>;  // from, to, tag

  std::mutex mutex_;
  std::condition_variable changed_;
  bool ended_ = false;
  std::map<std::pair<int, int>, std::deque<std::string>> short_;
  std::map<Key, Side> sent_, awaited_;
};

class ThreadTransport : public Transport {
 public:
  ThreadTransport(ThreadNetwork& network, int member) : network_(network), member_(member) {}

  std::string address() const override { return "thread"; }
  Status connect(const std::vector<std::string>&) override { return {}; }
  bool move() override {
    ++moves_;
    return false;
  }
  /// How often move() was called.
  std::size_t moves() const { return moves_; }
  void pause(std::chrono::microseconds) override {}
  void abort() override { network_.end(); }

  Status send_short(int peer, const void* data, std::size_t bytes) override {
    const std::lock_guard lock(network_.mutex_);
    network_.short_[{member_, peer}].emplace_back(static_cast<const char*>(data), bytes);
    network_.changed_.notify_all();
    return {};
  }

  Status receive_short(int peer, void* data, std::size_t bytes) override {
    std::unique_lock lock(network_.mutex_);
    auto& queue = network_.short_[{peer, member_}];
    network_.changed_.wait(lock, [&] { return network_.ended_ || !queue.empty(); });
    if (queue.empty()) return ended();
    const std::string message = std::move(queue.front());
    queue.pop_front();
    if (message.size() != bytes) return Status(Errc::kBug, "a short message of another length");
    std::memcpy(data, message.data(), bytes);
    return {};
  }

  Status flush() override { return {}; }

  std::unique_ptr<TransportBuffer> buffer(void* data, std::size_t bytes) override {
    return std::make_unique<Buffer>(*this, static_cast<std::byte*>(data), bytes);
  }

 private:
  static Status ended() { return Status(Errc::kAborted, "the exchange was ended"); }

  class Buffer : public TransportBuffer {
   public:
    Buffer(ThreadTransport& transport, std::byte* data, std::size_t bytes)
        : network_(transport.network_), member_(transport.member_), data_(data), bytes_(bytes) {}
    ~Buffer() override {
      const std::lock_guard lock(network_.mutex_);
      const auto forget = [this](auto& sides) {
        std::erase_if(sides, [this](const auto& entry) {
          return entry.second.done == &sent_ || entry.second.done == &received_;
        });
      };
      forget(network_.sent_);
      forget(network_.awaited_);
    }

    Status send(int peer, std::uint64_t tag, std::size_t offset, std::size_t bytes) override {
      const Status status = check(sends_, offset, bytes);
      sends_ = true;
      return status.ok() ? post({member_, peer, tag}, offset, bytes, sent_, network_.sent_, network_.awaited_, true)
                         : status;
    }
    Status receive(int peer, std::uint64_t tag, std::size_t offset, std::size_t bytes) override {
      const Status status = check(receives_, offset, bytes);
      receives_ = true;
      return status.ok()
                 ? post({peer, member_, tag}, offset, bytes, received_, network_.awaited_, network_.sent_, false)
                 : status;
    }
    Status wait_sent() override { return std::exchange(sends_, false) ? wait(sent_) : Status(); }
    Status wait_received() override { return std::exchange(receives_, false) ? wait(received_) : Status(); }

   private:
    Status check(bool busy, std::size_t offset, std::size_t bytes) const {
      if (busy) return Status(Errc::kBug, "two messages of a kind in one buffer");
      if (bytes == 0 || offset + bytes > bytes_) return Status(Errc::kBug, "a message outside of its buffer");
      return {};
    }

    Status post(const ThreadNetwork::Key& key, std::size_t offset, std::size_t bytes, bool& done,
                std::map<ThreadNetwork::Key, ThreadNetwork::Side>& own,
                std::map<ThreadNetwork::Key, ThreadNetwork::Side>& others, bool sends) {
      const std::lock_guard lock(network_.mutex_);
      done = false;
      const auto found = others.find(key);
      if (found == others.end()) {
        if (!own.emplace(key, ThreadNetwork::Side{data_ + offset, bytes, &done}).second)
          return Status(Errc::kBug, "a tag used twice");
        return {};
      }
      const ThreadNetwork::Side other = found->second;
      others.erase(found);
      if (other.bytes != bytes) return Status(Errc::kBug, "a message of another length");
      std::memcpy(sends ? other.data : data_ + offset, sends ? data_ + offset : other.data, bytes);
      done = *other.done = true;
      network_.changed_.notify_all();
      return {};
    }

    Status wait(const bool& done) {
      std::unique_lock lock(network_.mutex_);
      network_.changed_.wait(lock, [&] { return done || network_.ended_; });
      return done ? Status() : ended();
    }

    ThreadNetwork& network_;
    const int member_;
    std::byte* const data_;
    const std::size_t bytes_;
    bool sends_ = false, receives_ = false;  ///< begun and not waited for
    bool sent_ = true, received_ = true;     ///< guarded by the network's mutex
  };

  std::size_t moves_ = 0;
  ThreadNetwork& network_;
  const int member_;
};

}  // namespace runjob::runtime
