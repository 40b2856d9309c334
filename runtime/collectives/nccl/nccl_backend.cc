#include "runtime/collectives/nccl/nccl_backend.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include <fmt/format.h>

#include "base/error.hpp"
#include "runtime/collectives/nccl/bounded_call.hpp"
#include "runtime/collectives/nccl/offer.hpp"
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
  if (!is_drained && communicator) communicator->stop();  // this one alone: other process sets may go on
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

/// Tensors of one operation, which follow each other, have one work. The other ranks' works may wait in vain for one
/// that has failed here: nothing is launched after it, because it would meet the other ranks' part of the failed one.
Status NcclBackend::run_together(std::span<const Call> calls) {
  Status status;
  try {
    Place& used = usable_place(std::nullopt);
    if (!staged_) agree(used);
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
  if (status.ok()) return status;
  works_.note_failure(status);
  const MutexLock lock(mutex_);
  if (!launch_failure_) launch_failure_ = status;
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
  std::string objection;
  const Terms terms = translate(calls.front(), options_.mesh.size, objection);
  std::shared_ptr<Communicator> communicator;
  bool is_ordered = false;
  {
    const MutexLock lock(mutex_);
    communicator = communicator_;
    is_ordered = is_ordered_;
  }
  if (!communicator || !objection.empty()) return queue_staged(calls, works, place);
  for (const Call& call : calls) call.tell_stage("NCCL", nullptr);
  if (!is_ordered) return launch(*communicator, calls, terms, place, works);
  LaunchOrder::Turn turn(SharedGpu::of(place.gpu).order(), options_.mesh.names);
  LaunchOrder::Time proposal = turn.proposal(), time = proposal;
  for (const std::string& bytes : exchange({reinterpret_cast<const char*>(&proposal), sizeof proposal})) {
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
    if (i == 0 || works[i] != works[i - 1]) works[i]->begin_launch(place.stream);
  }
  calls.size() == 1 ? communicator.launch(calls.front(), terms) : communicator.launch_together(calls, terms);
  for (std::size_t i = 0; i < works.size(); ++i) {
    if (i == 0 || works[i] != works[i - 1]) works[i]->end_launch(place.stream);
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

/// Gives this rank's bytes, of which each rank has the same number, to all ranks.
std::vector<std::string> NcclBackend::exchange(const std::string& own) const {
  const auto size = static_cast<std::size_t>(options_.mesh.size);
  std::string all(own.size() * size, '\0');
  Call call;
  call.kind = Kind::kAllgather;
  call.input = own.data();
  call.output = all.data();
  call.count = own.size();
  call.counts.assign(size, own.size());
  options_.host->run(call).throw_if_failed();
  std::vector<std::string> parts;
  for (std::size_t rank = 0; rank < size; ++rank) parts.push_back(all.substr(rank * own.size(), own.size()));
  return parts;
}

UniqueId NcclBackend::make_id(const Library& library, cuda::Gpu& gpu) const {
  struct Made {
    UniqueId id{};
    Result result = kSuccess;
  };
  const auto made = std::make_shared<Made>();
  const std::chrono::milliseconds most = options_.mesh.connect_timeout;
  const auto make = [made, &library, &gpu] {
    try {
      const cuda::CurrentGpu current(gpu);
      made->result = library.get_unique_id(&made->id);
    } catch (const Error&) {
      made->result = -1;
    }
  };
  if (!run_bounded("runjob-nccl", most, make, [this] { return failure().has_value(); }))
    throw Error(Errc::kTimeout,
                fmt::format("NCCL has not made an id within {} s", std::chrono::duration<double>(most).count()));
  check(library, made->result, "making a communicator's id");
  return made->id;
}

void NcclBackend::agree(Place& place) {
  SharedGpu::of(place.gpu).join(this, [this](const Status& why) { end_works(why); });
  const MeshOptions& mesh = options_.mesh;
  Offer own;
  own.rank = mesh.name(mesh.rank);
  own.gpu = place.gpu.uuid();
  own.driver = cuda::driver().version;
  if (!mesh.hosts.empty()) own.host = mesh.hosts[static_cast<std::size_t>(mesh.rank)];
  own.host_id = settings_.host_id;
  own.may_share = settings_.may_share;
  own.shares_ranks = options_.terms.shares_ranks;
  const Library* loaded = nullptr;
  UniqueId id{};
  try {
    const cuda::CurrentGpu current(place.gpu);
    loaded = &library(settings_.library);
    own.nccl = loaded->version;
    own.path = loaded->path;
    if (mesh.rank == 0) {
      id = make_id(*loaded, place.gpu);
      own.id.assign(id.bytes, sizeof id.bytes);
    }
  } catch (const Error& error) {
    own.error = error.what();
  }
  std::vector<Offer> offers;
  for (const std::string& bytes : exchange(encode(own))) offers.push_back(decode_offer(bytes));
  auto staged = std::make_unique<StagedRun>(*options_.host, place.gpu, place.stream, mesh.rank,
                                            [this] { return failure().has_value(); });
  if (const std::string why = nccl::objection(offers); !why.empty()) {
    if (mesh.rank == 0) options_.log(true, "tensors on GPUs go through the host's memory: " + why);
    staged_ = std::move(staged);
    return;
  }
  std::memcpy(id.bytes, offers.front().id.data(), std::min(sizeof id.bytes, offers.front().id.size()));
  auto communicator = std::make_shared<Communicator>(*loaded, place.gpu, place.stream, mesh.rank, mesh.size);
  communicator->set_up(id, mesh.connect_timeout, [this] { return failure().has_value(); });
  options_.log(false, fmt::format("NCCL {} ({}) connects {} ranks; this rank uses {}", version_text(loaded->version),
                                  loaded->path, mesh.size, place.gpu.text()));
  const MutexLock lock(mutex_);
  is_ordered_ = std::any_of(offers.begin(), offers.end(), [](const Offer& each) { return each.shares_ranks; });
  library_ = loaded;
  communicator_ = std::move(communicator);
  staged_ = std::move(staged);
}

std::shared_ptr<BufferAllocator> NcclBackend::buffers(MemoryKind kind) const {
  if (kind != MemoryKind::kDevice) return nullptr;
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

std::optional<Status> NcclBackend::device_outcome() const {
  return works_.outcome();
}

std::string NcclBackend::unfinished() const {
  const MutexLock lock(mutex_);
  if (failure_ || !place_) return unfinished_;
  const std::string text = place_->gpu.flights().first_unfinished().text;
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
