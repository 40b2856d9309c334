#include "runtime/collectives/nccl/nccl_backend.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include <fmt/format.h>

#include "base/error.hpp"
#include "runtime/collectives/nccl/offer.hpp"
#include "runtime/collectives/nccl/translation.hpp"

namespace runjob::runtime::nccl {
namespace {

/// How long a rank that leaves the job waits for its GPU.
constexpr std::chrono::milliseconds kDrainTime{300};

}  // namespace

NcclBackend::NcclBackend(DeviceOptions options, NcclSettings settings)
    : options_(std::move(options)),
      settings_(std::move(settings)),
      works_(
          [this] {
            std::shared_ptr<Communicator> communicator;
            {
              const MutexLock lock(mutex_);
              communicator = communicator_;
            }
            if (communicator) communicator->check_health();
          },
          [this](const Status& why) {
            fail(why);
            if (options_.on_failure) options_.on_failure(why);
          }) {}

NcclBackend::~NcclBackend() {
  if (!works_.drain(kDrainTime)) abort(Status(Errc::kAborted, "this rank has left the job"));
  const MutexLock lock(mutex_);
  if (!failure_ && place_) place_->gpu.give_back(place_->stream);  // otherwise it may hold a kernel for ever
}

/// Errors  Error(kInvalidArgument): there is no such GPU; kUnavailable: this rank uses another one; kDevice.
NcclBackend::Place& NcclBackend::place(int ordinal) const {
  const MutexLock lock(mutex_);
  if (!place_) {
    cuda::Gpu& gpu = cuda::Gpu::of(ordinal);
    const cuda::Stream stream = gpu.take_stream();
    place_.reset(new Place{gpu, stream, std::make_shared<cuda::GpuMemory>(gpu, stream)});
  }
  if (place_->gpu.ordinal() == ordinal) return *place_;
  throw Error(Errc::kUnavailable, fmt::format("the tensor is on GPU {}, but this rank has used {}: a rank uses one GPU",
                                              ordinal, place_->gpu.text()));
}

/// The GPU of a rank that has given no tensor yet: that of its local rank.
int NcclBackend::usual_ordinal() const {
  {
    const MutexLock lock(mutex_);
    if (place_) return place_->gpu.ordinal();
  }
  const MeshOptions& mesh = options_.mesh;
  int local = mesh.rank;
  if (!mesh.hosts.empty()) {
    const auto own = mesh.hosts.begin() + mesh.rank;
    local = static_cast<int>(std::count(mesh.hosts.begin(), own, *own));
  }
  return local % std::max(1, static_cast<int>(cuda::list_gpus().size()));
}

Status NcclBackend::begin_work(const Device& device, std::shared_ptr<DeviceWork>& work) {
  try {
    if (const auto failed = failure()) return *failed;
    work = cuda::Work::submitted(place(device.ordinal).gpu, static_cast<cuda::Stream>(device.stream));
    return {};
  } catch (const Error& error) {
    return Status(error);
  } catch (const std::exception& error) {
    return Status(Errc::kSystem, error.what());
  }
}

/// Tensors of one operation, which follow each other, have one work.
Status NcclBackend::run_together(std::span<const Call> calls) {
  try {
    if (const auto failed = failure()) return *failed;
    Place& used = place(usual_ordinal());
    if (!staged_) agree(used);
    Works works;
    works.reserve(calls.size());
    for (const Call& call : calls) {
      works.push_back(call.work ? std::static_pointer_cast<cuda::Work>(call.work)
                                : std::make_shared<cuda::Work>(used.gpu));
    }
    queue(calls, works, used);
    for (std::size_t i = 0; i < works.size(); ++i) {
      if (i == 0 || works[i] != works[i - 1]) works_.add(works[i]);
    }
    for (std::size_t i = 0; i < works.size(); ++i) {
      if (calls[i].work) continue;
      if (Status status = works[i]->wait(std::nullopt).value_or(Status()); !status.ok()) return status;
    }
    return {};
  } catch (const Error& error) {
    return failure().value_or(Status(error));
  } catch (const std::exception& error) {
    return Status(Errc::kSystem, error.what());
  }
}

bool NcclBackend::only_queues(const Call& call) const {
  std::string objection;
  translate(call, options_.mesh.size, objection);
  const MutexLock lock(mutex_);
  return communicator_ != nullptr && objection.empty();
}

void NcclBackend::queue(std::span<const Call> calls, const Works& works, Place& place) {
  const cuda::CurrentGpu current(place.gpu);
  std::string objection;
  const Terms terms = translate(calls.front(), options_.mesh.size, objection);
  std::shared_ptr<Communicator> communicator;
  {
    const MutexLock lock(mutex_);
    communicator = communicator_;
  }
  if (!communicator || !objection.empty()) return queue_staged(calls, works, place);
  for (const Call& call : calls) call.tell_stage("NCCL", nullptr);
  const MutexLock launching(place.gpu.launch_mutex());
  for (std::size_t i = 0; i < works.size(); ++i) {
    if (i == 0 || works[i] != works[i - 1]) works[i]->begin_launch(place.stream);
  }
  calls.size() == 1 ? communicator->launch(calls.front(), terms) : communicator->launch_together(calls, terms);
  for (std::size_t i = 0; i < works.size(); ++i) {
    if (i == 0 || works[i] != works[i - 1]) works[i]->end_launch(place.stream);
  }
}

void NcclBackend::queue_staged(std::span<const Call> calls, const Works& works, Place& place) {
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

void NcclBackend::agree(Place& place) {
  const MeshOptions& mesh = options_.mesh;
  Offer own;
  own.rank = mesh.name(mesh.rank);
  own.gpu = place.gpu.uuid();
  own.driver = cuda::driver().version;
  if (!mesh.hosts.empty()) own.host = mesh.hosts[static_cast<std::size_t>(mesh.rank)];
  own.may_share = settings_.may_share;
  const Library* loaded = nullptr;
  UniqueId id{};
  try {
    const cuda::CurrentGpu current(place.gpu);
    loaded = &library(settings_.library);
    own.nccl = loaded->version;
    own.path = loaded->path;
    if (mesh.rank == 0) check(*loaded, loaded->get_unique_id(&id), "making a communicator's id");
    if (mesh.rank == 0) own.id.assign(id.bytes, sizeof id.bytes);
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
  communicator_ = std::move(communicator);
  staged_ = std::move(staged);
}

std::shared_ptr<BufferAllocator> NcclBackend::buffers(MemoryKind kind) const {
  if (kind != MemoryKind::kDevice) return nullptr;
  try {
    return place(usual_ordinal()).memory;
  } catch (const Error&) {
    return nullptr;
  }
}

std::optional<Status> NcclBackend::failure() const {
  const MutexLock lock(mutex_);
  return failure_;
}

/// The works first: when the kernels have ended, their events are complete.
void NcclBackend::fail(const Status& why) {
  std::shared_ptr<Communicator> communicator;
  {
    const MutexLock lock(mutex_);
    if (!failure_) failure_ = why;
    communicator = communicator_;
  }
  works_.fail(why);
  if (communicator) communicator->stop();
}

void NcclBackend::abort(const Status& why) {
  fail(why);
}

}  // namespace runjob::runtime::nccl
