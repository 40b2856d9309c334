#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "base/event_fd.hpp"
#include "base/mutex.hpp"
#include "base/status.hpp"
#include "rendezvous/protocol.hpp"

namespace runjob::runtime {

/// Receives the notices of an elastic job: which generations have ended, and what this process is to do. A thread of
/// its own keeps one request for a notice waiting at the rendezvous, on a second connection. When the present
/// generation has ended, the thread ends its collectives.
/// Owner    shared with its thread, which lives as long as the process or until the job is over.
/// Threads  any.
class NoticeWatch : public std::enable_shared_from_this<NoticeWatch> {
 public:
  /// What the newest notice asks of a member of one generation.
  struct Pending {
    bool is_outdated = false;  ///< the generation is to be left at the next commit
    bool only_added = true;    ///< that change has only added processes
    bool leaving = false;      ///< this process is to end at its next commit
  };

  /// Makes the object and starts its thread. `address`, `number`, `key_file`: as of rendezvous::Client.
  static std::shared_ptr<NoticeWatch> start(std::string address, int number, std::optional<std::string> key_file);

  Pending pending(int generation) const;

  /// From now on this process is a member of `generation`. Returns a flag that is set when it ends, for the calls that
  /// connect its ranks.
  std::shared_ptr<EventFd> begin(int generation);
  /// `end` is called once, on the watch's thread or in this call, when the generation has ended.
  void on_end(std::function<void(const Status&)> end);
  /// This process is a member of no generation any more.
  void leave();

 private:
  NoticeWatch(int number) : number_(number) {}
  void follow(const std::string& address, const std::optional<std::string>& key_file);
  void apply(rendezvous::Notice notice);
  bool has_ended() const REQUIRES(mutex_) { return generation_ >= 0 && notice_.ended >= generation_; }
  Status reason() const REQUIRES(mutex_);

  const int number_;
  mutable Mutex mutex_;
  rendezvous::Notice notice_ GUARDED_BY(mutex_);
  int generation_ GUARDED_BY(mutex_) = -1;
  std::shared_ptr<EventFd> ended_ GUARDED_BY(mutex_);  ///< shared with the calls that connect
  std::function<void(const Status&)> end_ GUARDED_BY(mutex_);
};

}  // namespace runjob::runtime
