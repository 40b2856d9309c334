#pragma once

#include <chrono>
#include <functional>
#include <future>
#include <memory>
#include <string>
#include <type_traits>
#include <vector>

#include "rendezvous/job_key.hpp"
#include "rendezvous/server/http_limits.hpp"
#include "rendezvous/server/service.hpp"
#include "tests/temporary_directory.hpp"

namespace runjob::rendezvous {

/// The place of `rank` in a job whose rank r is on a host named `hosts[r]`.
JoinReply place(const std::vector<std::string>& hosts, int rank, std::chrono::milliseconds start_timeout);

/// On TCP at 127.0.0.1, where everybody must hold the key.
struct OverTcp {};

/// A rendezvous for tests that run real ranks without the launcher: the service and its HTTP server on a thread of its
/// own, on a Unix socket in a new directory. It answers joins itself.
///
///     LocalRendezvous rendezvous({"a", "a", "b"});   // ranks 0 and 1 on host a, rank 2 on host b
///     ... RUNJOB_RENDEZVOUS=rendezvous.address(), RUNJOB_RANK=0 ...
///
/// Threads  any may call; on_service() runs a function on the service's thread.
class LocalRendezvous {
 public:
  explicit LocalRendezvous(std::vector<std::string> hosts,
                           std::chrono::milliseconds start_timeout = std::chrono::seconds(30), HttpLimits limits = {});
  LocalRendezvous(OverTcp, std::vector<std::string> hosts,
                  std::chrono::milliseconds start_timeout = std::chrono::seconds(30), HttpLimits limits = {});
  ~LocalRendezvous();

  std::string address() const;
  const std::string& path() const { return path_; }
  /// Over TCP:
  int port() const;
  const JobKey& key() const { return key_; }
  std::string key_file() const { return directory_.path() + "/key"; }

  /// Calls `call(service)` on the service's thread and returns its result.
  template <class Call>
  std::invoke_result_t<Call, Service&> on_service(Call call) {
    std::packaged_task<std::invoke_result_t<Call, Service&>(Service&)> task(std::move(call));
    auto result = task.get_future();
    post([&task](Service& service) { task(service); });
    return result.get();
  }

  std::string status();
  /// Ends the job: every wait gets 410.
  void close(const std::string& reason);

 private:
  class Loop;
  void post(std::function<void(Service&)> call);

  TemporaryDirectory directory_;
  const std::string path_;
  const JobKey key_ = JobKey::random();
  std::unique_ptr<Loop> loop_;
};

}  // namespace runjob::rendezvous
