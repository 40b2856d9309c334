#include "runtime/job/notice_watch.hpp"

#include <algorithm>
#include <pthread.h>
#include <signal.h>
#include <thread>
#include <utility>

#include "base/error.hpp"
#include "base/log.hpp"
#include "rendezvous/client.hpp"

namespace runjob::runtime {

std::shared_ptr<NoticeWatch> NoticeWatch::start(std::string address, int number, std::optional<std::string> key_file) {
  const std::shared_ptr<NoticeWatch> watch(new NoticeWatch(number));
  sigset_t all, before;
  sigfillset(&all);  // the program's signals are for its own threads
  pthread_sigmask(SIG_SETMASK, &all, &before);
  std::thread([watch, address = std::move(address), key_file = std::move(key_file)] {
    pthread_setname_np(pthread_self(), "runjob-notice");
    watch->follow(address, key_file);
  }).detach();
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return watch;
}

NoticeWatch::Pending NoticeWatch::pending(int generation) const {
  const MutexLock lock(mutex_);
  const std::vector<int>& leaving = notice_.leaving;
  return {.is_outdated = notice_.outdated >= generation,
          .only_added = notice_.only_added,
          .leaving = std::find(leaving.begin(), leaving.end(), number_) != leaving.end()};
}

std::shared_ptr<EventFd> NoticeWatch::begin(int generation) {
  const MutexLock lock(mutex_);
  generation_ = generation;
  end_ = nullptr;
  ended_ = std::make_shared<EventFd>();
  if (has_ended()) ended_->set();
  return ended_;
}

void NoticeWatch::on_end(std::function<void(const Status&)> end) {
  Status why;
  {
    const MutexLock lock(mutex_);
    if (!has_ended()) {
      end_ = std::move(end);
      return;
    }
    why = reason();
  }
  if (!why.ok()) end(why);
}

void NoticeWatch::leave() {
  const MutexLock lock(mutex_);
  generation_ = -1;
  end_ = nullptr;
  ended_ = nullptr;
}

Status NoticeWatch::reason() const {
  return Status(Errc::kPeerLost, notice_.reason.empty() ? "this generation of the job has ended" : notice_.reason);
}

void NoticeWatch::apply(rendezvous::Notice notice) {
  std::function<void(const Status&)> end;
  Status why;
  {
    const MutexLock lock(mutex_);
    notice_ = std::move(notice);
    if (!has_ended()) return;
    why = reason();
    end = std::exchange(end_, nullptr);
    if (ended_) ended_->set();
  }
  if (end) end(why);
}

void NoticeWatch::follow(const std::string& address, const std::optional<std::string>& key_file) {
  constexpr std::chrono::hours kWait{1};            // the agent answers sooner when there is a notice
  constexpr std::chrono::milliseconds kPause{500};  // after an error: the agent, if it is gone, has this process ended
  std::int64_t seen = 0;
  for (;;) {
    try {
      rendezvous::Client client(address, number_, key_file);
      for (;;) {
        std::optional<rendezvous::Notice> notice = client.notice(seen, kWait);
        if (!notice) continue;
        seen = notice->sequence;
        apply(*std::move(notice));
      }
    } catch (const Error& error) {
      log::debug("waiting for a notice of the launcher: {}", error.what());
      if (error.code() == Errc::kAborted) return;  // the job is over
    }
    std::this_thread::sleep_for(kPause);
  }
}

}  // namespace runjob::runtime
