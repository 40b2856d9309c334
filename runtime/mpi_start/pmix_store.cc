#include "runtime/mpi_start/pmix_store.hpp"

#include <cstring>
#include <iterator>
#include <optional>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/mutex.hpp"

namespace runjob::runtime {

namespace {

/// The state of the launcher, and the callback that is notified of its loss. PMIx's event handlers get no context of
/// the caller. It is never destroyed, because libpmix's thread may be using it at the end of the process.
struct Launcher {
  Mutex mutex;
  bool is_lost GUARDED_BY(mutex) = false;
  std::function<void(const Status&)> notify GUARDED_BY(mutex);  // moved out when called
  std::string name GUARDED_BY(mutex);
};

Launcher& the_launcher() {
  static Launcher& only = *new Launcher;
  return only;
}

void notify_when_lost() {
  std::function<void(const Status&)> notify;
  std::string name;
  {
    Launcher& launcher = the_launcher();
    const MutexLock lock(launcher.mutex);
    if (!launcher.is_lost) return;
    notify = std::exchange(launcher.notify, nullptr);
    name = launcher.name;
  }
  if (notify) notify(Status(Errc::kAborted, fmt::format("{}, which has started this rank, has gone", name)));
}

void report_launcher_loss() {
  {
    Launcher& launcher = the_launcher();
    const MutexLock lock(launcher.mutex);
    launcher.is_lost = true;
  }
  notify_when_lost();
}

void handle_loss(std::size_t /*handler*/, pmix::Status /*status*/, const pmix::Proc* /*source*/, pmix::Info* /*info*/,
                 std::size_t /*count*/, pmix::Info* /*results*/, std::size_t /*result_count*/,
                 pmix::EventHandled handled, void* of_notification) noexcept {
  report_launcher_loss();
  if (handled != nullptr) handled(pmix::kSuccess, nullptr, 0, nullptr, nullptr, of_notification);
}

/// Called when the launcher has refused to send events of its loss. If it is already lost, there will be no event, and
/// nothing that needs it can be started. libpmix may read `self` until the fence ends.
void events_refused(const PmixLibrary& library, const pmix::Proc& self) noexcept {
  const auto done = [](pmix::Status /*status*/, void* /*context*/) noexcept {};
  if (library.fence(&self, 1, nullptr, 0, done, nullptr) == pmix::kUnreachable) report_launcher_loss();
}

void copy_text(char* to, std::size_t room, const std::string& text, const char* what) {
  if (text.size() >= room) throw Error(Errc::kProtocol, fmt::format("{} '{}' is too long for PMIx", what, text));
  std::memcpy(to, text.c_str(), text.size() + 1);
}

/// Errors  Error(kUnavailable) naming the package to install, and the launcher.
PmixLibrary open_library_of(const ForeignLauncher& launcher) try {
  return open_pmix_library(launcher.library_folders);
} catch (const Error& error) {
  throw Error(
      error.code(),
      fmt::format(
          "init(): {} has started this process, and finding the other ranks needs libpmix.so.2 ({}); install it "
          "(Debian and Ubuntu: apt-get install libpmix2), add its folder to LD_LIBRARY_PATH, or start the program with "
          "runjob; in Python, mpi4py does as well",
          launcher.name, error.what()));
}

}  // namespace

PmixStore::PmixStore(const ForeignLauncher& launcher) : library_(open_library_of(launcher)) {
  const pmix::Status status = library_.init(&self_, nullptr, 0);
  if (status != pmix::kSuccess) {
    throw Error(Errc::kConnect,
                fmt::format("init(): {} has started this process, but PMIx cannot reach it: {}; is it still running?",
                            launcher.name, library_.error_text(status)));
  }
  if (self_.name_space != launcher.pmix_namespace) {  // otherwise it would be a job of this process alone
    static_cast<void>(library_.finalize(nullptr, 0));
    throw Error(Errc::kConnect,
                fmt::format("init(): PMIx says that this process is of job '{}', and {} that it is of '{}'",
                            self_.name_space, launcher.name, launcher.pmix_namespace));
  }
  constexpr std::chrono::seconds kPatience{30};
  const std::optional<PmixQuestion::Answer> size =
      ask(pmix::kRankWildcard, pmix::kJobSizeKey).wait(std::chrono::steady_clock::now() + kPatience);
  if (!size)
    throw Error(Errc::kTimeout, fmt::format("init() over PMIx: {} does not give the number of ranks", launcher.name));
  check(size->status, "asking for the number of ranks");
  size_ = static_cast<int>(size->number);
  {
    Launcher& known = the_launcher();
    const MutexLock lock(known.mutex);
    known.name = launcher.name;
  }
  watch_launcher();
}

/// libpmix keeps a pointer to this store, which is the only one of the process and is never destroyed.
void PmixStore::watch_launcher() {
  static pmix::Status codes[] = {pmix::kLostConnection, pmix::kLostConnectionToServer};
  const auto added = [](pmix::Status status, std::size_t /*handler*/, void* store) noexcept {
    const auto& self = *static_cast<const PmixStore*>(store);
    if (status != pmix::kSuccess && status != pmix::kOperationSucceeded) events_refused(self.library_, self.self_);
  };
  static_cast<void>(library_.add_event_handler(codes, std::size(codes), nullptr, 0, handle_loss, added, this));
}

void PmixStore::on_loss(std::function<void(const Status&)> notify) {
  {
    Launcher& launcher = the_launcher();
    const MutexLock lock(launcher.mutex);
    launcher.notify = std::move(notify);
  }
  notify_when_lost();
}

void PmixStore::leave() noexcept {
  static_cast<void>(library_.finalize(nullptr, 0));
}

void PmixStore::put(const std::string& key, const std::string& value) {
  check(put_pmix_value(library_, key, value), fmt::format("putting {}", key));
}

void PmixStore::wait_for_all(TimePoint deadline) {
  check(library_.commit(), "giving values to the launcher");
  PmixPromise<pmix::Status> end;
  PmixRequest& request = end.request();
  copy_text(request.info.key, sizeof request.info.key, pmix::kCollectDataKey, "the key");
  request.info.value.type = pmix::kBool;
  request.info.value.data.flag = true;
  request.process = self_;
  request.process.rank = pmix::kRankWildcard;
  void* context = end.context();
  const auto done = [](pmix::Status status, void* promised) noexcept {
    PmixPromise<pmix::Status>::finish(promised, status);
  };
  const pmix::Status started = library_.fence(&request.process, 1, &request.info, 1, done, context);
  if (started != pmix::kSuccess) PmixPromise<pmix::Status>::finish(context, started);  // libpmix will not call it
  const std::optional<pmix::Status> ended = end.wait(deadline);
  if (!ended) throw Error(Errc::kTimeout, "");
  check(*ended, "waiting for all ranks");
}

std::string PmixStore::get(int rank, const std::string& key, TimePoint deadline) {
  const std::optional<PmixQuestion::Answer> answer = ask(static_cast<std::uint32_t>(rank), key).wait(deadline);
  if (!answer) throw Error(Errc::kTimeout, fmt::format("init() over PMIx: no value of rank {} in time", rank));
  check(answer->status, fmt::format("reading the value of rank {}", rank));
  return answer->bytes;
}

std::optional<std::vector<int>> PmixStore::absent(const std::string& key, std::chrono::milliseconds patience) {
  const TimePoint deadline = std::chrono::steady_clock::now() + patience;
  std::vector<PmixQuestion> questions;
  for (int rank = 0; rank < size_; ++rank) questions.push_back(ask(static_cast<std::uint32_t>(rank), key));
  std::vector<int> result;
  for (int rank = 0; rank < size_; ++rank) {
    const std::optional<PmixQuestion::Answer> answer = questions[static_cast<std::size_t>(rank)].wait(deadline);
    if (!answer || answer->status != pmix::kSuccess) result.push_back(rank);
  }
  return result;
}

PmixQuestion PmixStore::ask(std::uint32_t rank, const std::string& key) const {
  return {library_, self_, rank, key};
}

/// Errors  Error(kConnect).
void PmixStore::check(pmix::Status status, const std::string& what) const {
  if (status == pmix::kSuccess || status == pmix::kOperationSucceeded) return;
  throw Error(Errc::kConnect, fmt::format("init() over PMIx: {}: {}", what, library_.error_text(status)));
}

}  // namespace runjob::runtime
