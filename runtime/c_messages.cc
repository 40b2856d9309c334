#include <numeric>
#include <runjob/runjob.h>

#include <fmt/format.h>

#include "base/error.hpp"
#include "runtime/c_operation.hpp"
#include "runtime/c_status.hpp"
#include "runtime/messages/rank_messages.hpp"
#include "runtime/process.hpp"

/// The C interface of messages between two ranks.

namespace {

using namespace runjob::runtime;
using runjob::Errc;
using runjob::Error;
using runjob::Status;

MessageSet set_of(const Job& job, int32_t process_set, const char* what) {
  MessageSet set{process_set, {}};
  if (process_set == 0) {
    set.ranks.resize(static_cast<std::size_t>(job.place.size));
    std::iota(set.ranks.begin(), set.ranks.end(), 0);
    return set;
  }
  static_cast<void>(job.process_sets->find(
      process_set, [what] { return std::string(what); }));  // throws unless this rank is a member
  set.ranks = job.process_sets->ranks(process_set);
  return set;
}

/// Begins a message by `begin(messages, set)` and gives the caller its handle.
template <class Begin>
runjob_code guarded_begin(const char* what, const void* buffer, int64_t bytes, int32_t process_set,
                          runjob_handle* handle, Begin begin) noexcept {
  return guarded([&] {
    if (handle == nullptr) throw Error(Errc::kInvalidArgument, "an operation needs somewhere to put its handle");
    if (bytes < 0 || (bytes > 0 && buffer == nullptr))
      throw Error(Errc::kInvalidArgument, fmt::format("{}: {} bytes at {}", what, bytes, fmt::ptr(buffer)));
    *handle = Process::current().with_job([&](const Job& job) {
      const MessageSet set = set_of(job, process_set, what);
      return Process::current().handles().add(begin(*job.messages, set), job.messages);
    });
    return Status();
  });
}

}  // namespace

runjob_code runjob_send_async(const void* buffer, int64_t bytes, int32_t peer, int64_t tag, int32_t process_set,
                              runjob_handle* handle) {
  return guarded_begin("send", buffer, bytes, process_set, handle, [&](RankMessages& messages, const MessageSet& set) {
    return messages.send(buffer, static_cast<std::size_t>(bytes), peer, tag, set);
  });
}

runjob_code runjob_recv_async(void* buffer, int64_t bytes, int32_t peer, int64_t tag, int32_t process_set,
                              runjob_handle* handle) {
  return guarded_begin("receive", buffer, bytes, process_set, handle,
                       [&](RankMessages& messages, const MessageSet& set) {
                         return messages.receive(buffer, static_cast<std::size_t>(bytes), peer, tag, set);
                       });
}

runjob_code runjob_received_from(runjob_handle handle, int32_t* peer, int64_t* bytes) {
  return guarded([&] {
    std::shared_ptr<Completion> completion;
    Status outcome = find_result(handle, completion);
    if (!outcome.ok()) return outcome;
    const auto& source = completion->result().source;
    if (!source) throw Error(Errc::kInvalidArgument, "only a receive has a sender");
    if (peer != nullptr) *peer = source->rank;
    if (bytes != nullptr) *bytes = source->bytes;
    return Status();
  });
}
