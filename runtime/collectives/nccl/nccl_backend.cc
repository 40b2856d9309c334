#include "runtime/collectives/nccl/nccl_backend.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include <fmt/format.h>

#include "base/error.hpp"
#include "runtime/collectives/nccl/agreement.hpp"
#include "runtime/collectives/nccl/translation.hpp"

namespace runjob::runtime::nccl {
namespace {

/// How long a rank that leaves the job waits until the end of works that are done has been noted.
constexpr std::chrono::milliseconds kDrainTime{300};

/// The GPU of a rank that has given no tensor yet: that of its local rank.
int usual_ordinal(const MeshOptions& mesh) {
  int local = mesh.rank;
  if (!mesh.hosts.empty()) {
    const auto own = mesh.hosts.begin() + mesh.rank;
    local = static_cast<int>(std::count(mesh.hosts.begin(), own, *own));
  }
  return local % std::max(1, static_cast<int>(cuda::list_gpus().size()));
}

}  // namespace

NcclBackend::NcclBackend(DeviceOptions options, NcclSettings settings)
    : options_(std::move(options)),
      settings_(std::move(settings)),
      works_([this] { check_health(); },
             [this](const Status& why) {
               if (options_.on_failure) options_.on_failure(why);  // first: this rank may leave as soon as it knows
               abort(why);
             }) {}

NcclBackend::~NcclBackend() {
  const bool is_drained = works_.outcome().has_value() && works_.drain(kDrainTime);
  if (!is_drained) {
    if (const std::string text = unfinished(); !failure() && !text.empty())
      options_.log(true, "the first operation that is not done on " + text);
    works_.end(Status(Errc::kAborted, "this rank has left the job"));
  }
  std::shared_ptr<Communicator> communicator;
  cuda::Gpu* gpu = nullptr;
  {
    const MutexLock lock(mutex_);
    communicator = communicator_;
    if (place_) gpu = &place_->gpu;
  }
  if (gpu == nullptr) return;
  SharedGpu::of(*gpu).leave(this);
  if ((!is_drained || failure()) && communicator) communicator->stop();  // this one alone: other process sets may go on
  const MutexLock lock(mutex_);
  SharedGpu::of(*gpu).give_back(place_->stream, is_drained && !failure_);
}

void NcclBackend::check_health() {
  std::shared_ptr<Communicator> communicator;
  cuda::Gpu* gpu = nullptr;
  {
    const MutexLock lock(mutex_);
    communicator = communicator_;
    if (place_) gpu = &place_->gpu;
  }
  if (communicator) communicator->check_health();
  if (gpu == nullptr) return;
  if (const std::string text = SharedGpu::of(*gpu).stall(options_.terms); !text.empty()) options_.log(true, text);
}

/// Errors  Error with the failure, when there was one; those of place().
NcclBackend::Place& NcclBackend::usable_place(std::optional<int> ordinal) const {
  const MutexLock lock(mutex_);
  if (failure_) failure_->throw_if_failed();
  if (launch_failure_) launch_failure_->throw_if_failed();
  return place(ordinal);
}

/// `ordinal`: nullopt for the GPU that this rank uses, or is going to use.
/// Errors  Error(kInvalidArgument): there is no such GPU; kUnavailable: this rank uses another one; kDevice.
NcclBackend::Place& NcclBackend::place(std::optional<int> ordinal) const {
  if (!place_) {
    cuda::Gpu& gpu = cuda::Gpu::of(ordinal ? *ordinal : usual_ordinal(options_.mesh));
    const cuda::Stream stream = SharedGpu::of(gpu).take_stream(options_.terms.shares_ranks);
    place_.reset(new Place{gpu, stream, std::make_shared<cuda::GpuMemory>(gpu, stream)});
  }
  if (!ordinal || place_->gpu.ordinal() == *ordinal) return *place_;
  throw Error(Errc::kUnavailable, fmt::format("the tensor is on GPU {}, but this rank has used {}: a rank uses one GPU",
                                              *ordinal, place_->gpu.text()));
}

Status NcclBackend::begin_work(const DeviceSubmission& submission, std::shared_ptr<DeviceWork>& work) {
  try {
    work = cuda::Work::submitted(usable_place(submission.device.ordinal).gpu, submission);
    return {};
  } catch (const Error& error) {
    return Status(error);
  } catch (const std::exception& error) {
    return Status(Errc::kSystem, error.what());
  }
}

/// A failure to agree is that of the call, which run() returns.
Status NcclBackend::refusal(const Call& call) {
  std::string objection;
  translate(call, options_.mesh.size, objection);
  if (objection.empty()) return {};
  try {
    agreed_place();
    return staged_ ? Status() : Status(Errc::kUnavailable, objection);
  } catch (const Error& error) {
    note_launch_failure(failure().value_or(Status(error)));
  } catch (const std::exception& error) {
    note_launch_failure(Status(Errc::kSystem, error.what()));
  }
  return {};
}

/// Nothing is launched after a failure.
void NcclBackend::note_launch_failure(const Status& why) {
  works_.note_failure(why);
  const MutexLock lock(mutex_);
  if (!launch_failure_) launch_failure_ = why;
}

/// Tensors of one operation, which follow each other, have one work. The other ranks' works may wait in vain for one
/// that has failed here: nothing is launched after it, because it would meet the other ranks' part of the failed one.
Status NcclBackend::run(std::span<const Call> calls) {
  Status status;
  try {
    Place& used = agreed_place();
    const auto work_of = [&used](const Call& call) {
      return call.work ? std::static_pointer_cast<cuda::Work>(call.work) : std::make_shared<cuda::Work>(used.gpu);
    };
    if (calls.size() == 1) {  // without memory for a list
      const std::shared_ptr<cuda::Work> work = work_of(calls.front());
      status = run(calls, {&work, 1}, used);
    } else {
      std::vector<std::shared_ptr<cuda::Work>> works;
      for (const Call& call : calls) works.push_back(work_of(call));
      status = run(calls, works, used);
    }
  } catch (const Error& error) {
    status = failure().value_or(Status(error));
  } catch (const std::exception& error) {
    status = Status(Errc::kSystem, error.what());
  }
  if (!status.ok()) note_launch_failure(status);
  return status;
}

/// Waits for the calls whose caller has no work to wait for.
Status NcclBackend::run(std::span<const Call> calls, Works works, Place& place) {
  queue(calls, works, place);
  for (std::size_t i = 0; i < works.size(); ++i) {
    if (i == 0 || works[i] != works[i - 1]) works_.add(works[i]);
  }
  for (std::size_t i = 0; i < works.size(); ++i) {
    if (calls[i].work) continue;
    if (Status status = works[i]->wait(std::nullopt).value_or(Status()); !status.ok()) return status;
  }
  return {};
}

bool NcclBackend::only_queues(const Call& call) const {
  std::string objection;
  translate(call, options_.mesh.size, objection);
  const MutexLock lock(mutex_);
  return communicator_ != nullptr && !is_ordered_ && objection.empty();
}

void NcclBackend::queue(std::span<const Call> calls, Works works, Place& place) {
  const cuda::CurrentGpu current(place.gpu);
  if (staged_) return queue_staged(calls, works, place);
  std::string objection;  // none: see refusal()
  const Terms terms = translate(calls.front(), options_.mesh.size, objection);
  std::shared_ptr<Communicator> communicator;
  bool is_ordered = false;
  {
    const MutexLock lock(mutex_);
    communicator = communicator_;
    is_ordered = is_ordered_;
  }
  for (const Call& call : calls) call.tell_stage("NCCL", nullptr);
  if (!is_ordered) return launch(*communicator, calls, terms, place, works);
  LaunchOrder::Turn turn(SharedGpu::of(place.gpu).order(), options_.mesh.names);
  LaunchOrder::Time proposal = turn.proposal(), time = proposal;
  for (const std::string& bytes : give_to_all(options_, {reinterpret_cast<const char*>(&proposal), sizeof proposal})) {
    std::memcpy(&proposal, bytes.data(), sizeof proposal);
    time = std::max(time, proposal);
  }
  if (!turn.wait(time, [this] { return failure().has_value(); })) throw Error(Errc::kAborted, "the job has ended");
  launch(*communicator, calls, terms, place, works);
}

void NcclBackend::launch(Communicator& communicator, std::span<const Call> calls, const Terms& terms, Place& place,
                         Works works) {
  const MutexLock launching(place.gpu.launch_mutex());
  for (std::size_t i = 0; i < works.size(); ++i) {
    if (i == 0 || works[i] != works[i - 1]) works[i]->begin_launch(communicator.stream());
  }
  calls.size() == 1 ? communicator.launch(calls.front(), terms) : communicator.launch_together(calls, terms);
  for (std::size_t i = 0; i < works.size(); ++i) {
    if (i == 0 || works[i] != works[i - 1]) works[i]->end_launch(communicator.stream());
  }
}

void NcclBackend::queue_staged(std::span<const Call> calls, Works works, Place& place) {
  for (std::size_t i = 0; i < calls.size(); ++i) {
    calls[i].tell_stage("GPU_STAGED", nullptr);
    works[i]->begin_launch(place.stream);
    staged_->run(calls[i]).throw_if_failed();
    works[i]->end_launch(place.stream);
  }
}

/// This rank's GPU, on which all ranks have agreed how they use it.
NcclBackend::Place& NcclBackend::agreed_place() {
  Place& place = usable_place(std::nullopt);
  if (has_agreed_) return place;
  SharedGpu::of(place.gpu).join(this, [this](const Status& why) { end_works(why); });
  const auto is_given_up = [this] { return failure().has_value(); };
  Agreement agreed = nccl::agree(options_, settings_, place.gpu, place.stream, is_given_up);
  if (!agreed.communicator)
    staged_ = std::make_unique<StagedRun>(*options_.host, place.gpu, place.stream, options_.mesh.rank, is_given_up);
  has_agreed_ = true;
  const MutexLock lock(mutex_);
  is_ordered_ = agreed.is_ordered;
  library_ = agreed.library;
  communicator_ = std::move(agreed.communicator);
  // An abort() before this lock did not know the library, and stopped nothing.
  if (failure_ && communicator_) communicator_->stop();
  if (failure_) failure_->throw_if_failed();
  return place;
}

std::shared_ptr<BufferAllocator> NcclBackend::memory() const {
  try {
    const MutexLock lock(mutex_);
    return place(std::nullopt).memory;
  } catch (const Error&) {
    return nullptr;
  }
}

std::optional<Status> NcclBackend::failure() const {
  const MutexLock lock(mutex_);
  return failure_;
}

std::optional<Status> NcclBackend::outcome() const {
  return works_.outcome();
}

std::string NcclBackend::unfinished() const {
  const MutexLock lock(mutex_);
  if (failure_ || !place_) return unfinished_;
  const std::string text = place_->gpu.flights().first_unfinished_text();
  return text.empty() ? text : fmt::format("{}: {}", place_->gpu.text(), text);
}

void NcclBackend::end_works(const Status& why) {
  const std::string text = unfinished();
  bool is_first = false;
  {
    const MutexLock lock(mutex_);
    is_first = !failure_;
    if (is_first) unfinished_ = text;
    if (is_first) failure_ = why;
  }
  if (is_first && !text.empty()) options_.log(true, "the first operation that is not done on " + text);
  works_.fail(why);
}

/// The works first: when the kernels have ended, their events are complete.
void NcclBackend::abort(const Status& why) {
  end_works(why);
  cuda::Gpu* gpu = nullptr;
  const Library* loaded = nullptr;
  {
    const MutexLock lock(mutex_);
    loaded = library_;
    if (place_) gpu = &place_->gpu;
  }
  if (gpu == nullptr || loaded == nullptr) return;
  SharedGpu::of(*gpu).stop_all(*loaded, why, [log = options_.log](const std::string& line) { log(true, line); });
}

}  // namespace runjob::runtime::nccl
