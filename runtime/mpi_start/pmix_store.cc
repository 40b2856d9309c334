#include "runtime/mpi_start/pmix_store.hpp"

#include <cstring>
#include <iterator>
#include <memory>
#include <optional>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/mutex.hpp"

namespace runjob::runtime {

namespace {

/// The arguments of a request to libpmix, which may read them until it answers.
struct Request {
  pmix::Proc process{};
  std::string key;
  pmix::Info info{};
};

/// The answer that libpmix will give on its own thread, perhaps after this process has stopped waiting for it. Copies
/// share one answer.
template <class Answer>
class Promised {
 public:
  /// The arguments. They must be set before the request is made.
  Request& request() { return state_->request; }

  /// The context for libpmix, which passes it to finish() exactly once.
  void* context() const { return new std::shared_ptr<State>(state_); }
  static void finish(void* context, Answer answer) {
    const std::unique_ptr<std::shared_ptr<State>> state(static_cast<std::shared_ptr<State>*>(context));
    const MutexLock lock((*state)->mutex);
    (*state)->answer = std::move(answer);
    (*state)->done.notify_all();
  }

  /// Waits for the answer; nullopt when the deadline has passed.
  std::optional<Answer> wait(KeyStore::TimePoint deadline) const {
    const MutexLock lock(state_->mutex);
    while (!state_->answer && state_->done.wait_until(state_->mutex, deadline) == std::cv_status::no_timeout) {
    }
    return state_->answer;
  }

 private:
  struct State {
    Request request;
    Mutex mutex;
    ConditionVariable done;
    std::optional<Answer> answer GUARDED_BY(mutex);
  };
  std::shared_ptr<State> state_ = std::make_shared<State>();  // owners: the waiting thread, and libpmix
};

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

}  // namespace

struct PmixStore::Answer {
  pmix::Status status = pmix::kSuccess;
  std::string bytes;
  std::uint32_t number = 0;
};

class PmixStore::Question : public Promised<Answer> {};

PmixStore::PmixStore(const ForeignLauncher& launcher)
    : library_(open_pmix_library(launcher.library_folders, launcher.name)) {
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
  const std::optional<Answer> size =
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
  std::string bytes = value;
  pmix::Value entry{};
  entry.type = pmix::kByteObject;
  entry.data.bytes = {bytes.data(), bytes.size()};
  check(library_.put(pmix::kScopeGlobal, key.c_str(), &entry), fmt::format("putting {}", key));
}

void PmixStore::wait_for_all(TimePoint deadline) {
  check(library_.commit(), "giving values to the launcher");
  Promised<pmix::Status> end;
  Request& request = end.request();
  copy_text(request.info.key, sizeof request.info.key, pmix::kCollectDataKey, "the key");
  request.info.value.type = pmix::kBool;
  request.info.value.data.flag = true;
  request.process = self_;
  request.process.rank = pmix::kRankWildcard;
  void* context = end.context();
  const auto done = [](pmix::Status status, void* promised) noexcept {
    Promised<pmix::Status>::finish(promised, status);
  };
  const pmix::Status started = library_.fence(&request.process, 1, &request.info, 1, done, context);
  if (started != pmix::kSuccess) Promised<pmix::Status>::finish(context, started);  // libpmix will not call it
  const std::optional<pmix::Status> ended = end.wait(deadline);
  if (!ended) throw Error(Errc::kTimeout, "");
  check(*ended, "waiting for all ranks");
}

std::string PmixStore::get(int rank, const std::string& key, TimePoint deadline) {
  const std::optional<Answer> answer = ask(static_cast<std::uint32_t>(rank), key).wait(deadline);
  if (!answer) throw Error(Errc::kTimeout, fmt::format("init() over PMIx: no value of rank {} in time", rank));
  check(answer->status, fmt::format("reading the value of rank {}", rank));
  return answer->bytes;
}

std::optional<std::vector<int>> PmixStore::absent(const std::string& key, std::chrono::milliseconds patience) {
  const TimePoint deadline = std::chrono::steady_clock::now() + patience;
  std::vector<Question> questions;
  for (int rank = 0; rank < size_; ++rank) questions.push_back(ask(static_cast<std::uint32_t>(rank), key));
  std::vector<int> result;
  for (int rank = 0; rank < size_; ++rank) {
    const std::optional<Answer> answer = questions[static_cast<std::size_t>(rank)].wait(deadline);
    if (!answer || answer->status != pmix::kSuccess) result.push_back(rank);
  }
  return result;
}

PmixStore::Question PmixStore::ask(std::uint32_t rank, const std::string& key) {
  const auto found = [](pmix::Status status, pmix::Value* value, void* context) noexcept {
    Answer answer{status, "", 0};
    if (status == pmix::kSuccess && value != nullptr) {  // owned by the library until this function returns
      if (value->type == pmix::kByteObject) answer.bytes.assign(value->data.bytes.bytes, value->data.bytes.size);
      if (value->type == pmix::kUint32) answer.number = value->data.uint32;
    }
    Question::finish(context, std::move(answer));
  };
  Question question;
  Request& request = question.request();
  request.process = self_;
  request.process.rank = rank;
  request.key = key;
  void* context = question.context();
  const pmix::Status started = library_.get(&request.process, request.key.c_str(), nullptr, 0, found, context);
  if (started != pmix::kSuccess) Question::finish(context, {started, "", 0});
  return question;
}

/// Errors  Error(kConnect).
void PmixStore::check(pmix::Status status, const std::string& what) const {
  if (status == pmix::kSuccess || status == pmix::kOperationSucceeded) return;
  throw Error(Errc::kConnect, fmt::format("init() over PMIx: {}: {}", what, library_.error_text(status)));
}

}  // namespace runjob::runtime
