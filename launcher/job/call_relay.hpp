#pragma once

#include <cstddef>
#include <deque>
#include <functional>
#include <string>
#include <string_view>

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>

#include "base/unique_handle.hpp"
#include "launcher/job_spec/job_spec.hpp"
#include "rendezvous/protocol.hpp"

namespace runjob {

/// Carries a call of runjob.run() between the process that made it and the ranks, which ask for it through the
/// rendezvous:
///
///   GET  /v1/call/function/<offset>  -> the function's bytes from there on, at most kBlockBytes; none at their end
///   POST /v1/call/result             one block for the caller; answered when the caller's socket has taken it
///
/// The two ends (python/runjob) define the meaning of the bytes. The caller receives records: the number of the process
/// as i32 (-1 for the verdict), the length as u32, both little-endian, then the block. In a job of fixed size a
/// process's number is its rank. A rank that waits for each answer has one block under way, so a slow caller slows the
/// ranks, and nothing piles up here.
/// Owner    the job; the descriptors belong to this object.
/// Threads  the loop's one thread.
class CallRelay {
 public:
  static constexpr std::size_t kBlockBytes = 1024 * 1024;

  /// Owns the descriptors from now on. `on_caller_gone` is called once, from the loop.
  /// Errors  Error when the descriptors cannot be used.
  CallRelay(boost::asio::any_io_executor executor, const CallDescriptors& descriptors,
            std::function<void()> on_caller_gone);

  /// True for a request that handle() answers; the rendezvous answers all others.
  static bool takes(const rendezvous::Request& request);

  /// The request is one in the name of a process of the job, which is on the host that has sent it.
  void handle(rendezvous::Request request, rendezvous::Reply reply);

  /// After the loop has ended: blocks until the caller has all results and `verdict`, or is gone.
  void finish(std::string_view verdict);

 private:
  struct Record {
    std::string bytes;
    rendezvous::Reply reply;
  };

  rendezvous::Response function_block(const std::string& offset) const;
  void watch_caller();
  void write_some();
  bool send_front();
  void give_up();

  std::function<void()> on_caller_gone_;
  UniqueFd function_;
  boost::asio::posix::stream_descriptor caller_;
  std::deque<Record> records_;
  std::size_t sent_ = 0;  // bytes of the front record
  bool waiting_ = false;
  bool gone_ = false;
};

}  // namespace runjob
