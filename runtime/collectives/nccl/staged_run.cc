#include "runtime/collectives/nccl/staged_run.hpp"

#include <algorithm>
#include <numeric>
#include <thread>
#include <utility>

#include "base/error.hpp"

namespace runjob::runtime::nccl {
namespace {

using cuda::check;
using cuda::driver;

cuda::Address address(const void* memory) {
  return reinterpret_cast<cuda::Address>(memory);
}

/// The number of values of the result.
std::size_t result_count(const Call& call, int rank) {
  if (call.kind == Kind::kReducescatter) return call.counts[static_cast<std::size_t>(rank)];
  if (call.kind == Kind::kAllreduce || call.kind == Kind::kBroadcast) return call.count;
  return std::accumulate(call.counts.begin(), call.counts.end(), std::size_t{0});
}

bool reads_input(const Call& call, int rank) {
  return call.kind != Kind::kBroadcast || call.root == rank;
}

bool writes_result(const Call& call, int rank) {
  return call.kind != Kind::kBroadcast || call.root != rank;
}

/// `count` values of the tensors of `whole`, from the value `first` on.
Call piece_of(const Call& whole, std::size_t first, std::size_t count) {
  const std::size_t offset = first * size_of(whole.dtype);
  Call piece = whole;
  if (whole.input != nullptr) piece.input = static_cast<const std::byte*>(whole.input) + offset;
  piece.output = static_cast<std::byte*>(whole.output) + offset;
  piece.count = count;
  return piece;
}

/// The same call on memory of the host.
Call on_host(const Call& call, const void* input, void* output) {
  Call result = call;
  result.memory = {};
  result.work = nullptr;
  result.input = input;
  result.output = output;
  return result;
}

}  // namespace

StagedRun::StagedRun(DataBackend& host, cuda::Gpu& gpu, cuda::Stream stream, int rank,
                     std::function<bool()> is_given_up, std::size_t piece_bytes)
    : host_(host),
      gpu_(gpu),
      stream_(stream),
      rank_(rank),
      is_given_up_(std::move(is_given_up)),
      piece_bytes_(piece_bytes) {}

StagedRun::~StagedRun() {
  try {
    const cuda::CurrentGpu current(gpu_);
    if (out_ == nullptr || !is_idle()) return;
    if (memory_ != nullptr) driver().host_free(memory_);
    gpu_.give_back(out_);
    gpu_.give_back(in_);
    for (const cuda::Event event : {begun_, ended_}) gpu_.give_back(event);
    for (const Slot& slot : slots_) {
      if (slot.memory != nullptr) driver().host_free(slot.memory);
      for (const cuda::Event event : {slot.copied_out, slot.copied_in}) gpu_.give_back(event);
    }
  } catch (const Error&) {  // the driver is gone with the process
  }
}

Status StagedRun::run(const Call& call) {
  make_streams();
  const bool is_divisible = call.kind == Kind::kAllreduce || call.kind == Kind::kBroadcast;
  return is_divisible ? run_in_pieces(call) : run_whole(call);
}

Status StagedRun::run_in_pieces(const Call& call) {
  check(driver().event_record(begun_, stream_), "recording the begin of copies");
  for (const cuda::Stream copies : {out_, in_})
    check(driver().stream_wait(copies, begun_, 0), "waiting for the collectives' stream");
  const std::size_t most = std::max<std::size_t>(1, piece_bytes_ / size_of(call.dtype));
  const auto piece_at = [&](std::size_t first) { return piece_of(call, first, std::min(most, call.count - first)); };
  copy_out(piece_at(0), slots_[next_slot_]);
  for (std::size_t first = 0; first < call.count; first += most) {
    const Call piece = piece_at(first);
    Slot& slot = slots_[std::exchange(next_slot_, (next_slot_ + 1) % kSlots)];
    if (first + most < call.count) copy_out(piece_at(first + most), slots_[next_slot_]);
    wait_for(slot.copied_out);
    Status status = host_.run(on_host(piece, slot.memory, slot.memory));
    if (!status.ok()) return status;
    if (!writes_result(call, rank_)) continue;
    check(driver().copy_to_device(address(piece.output), slot.memory, piece.count * size_of(call.dtype), in_),
          "copying a result to the GPU");
    check(driver().event_record(slot.copied_in, in_), "recording the end of a copy");
  }
  check(driver().event_record(ended_, in_), "recording the end of copies");
  check(driver().stream_wait(stream_, ended_, 0), "waiting for copies");
  return {};
}

void StagedRun::make_streams() {
  if (out_ != nullptr) return;
  for (cuda::Event* event : {&begun_, &ended_}) *event = gpu_.take_event();
  for (Slot& slot : slots_) {
    slot.copied_out = gpu_.take_event();
    slot.copied_in = gpu_.take_event();
  }
  in_ = gpu_.take_stream();
  const cuda::Stream out = gpu_.take_stream();
  // An event that was used before may belong to a stream that is still busy.
  const auto record = [](cuda::Event event, cuda::Stream stream) {
    check(driver().event_record(event, stream), "recording an event of an idle stream");
  };
  for (const cuda::Event event : {begun_, ended_}) record(event, in_);
  for (const Slot& slot : slots_) {
    record(slot.copied_out, out);
    record(slot.copied_in, in_);
  }
  out_ = out;
}

/// Begins to fill the slot, once its last result has been copied to the GPU.
void StagedRun::copy_out(const Call& piece, Slot& slot) {
  if (slot.memory == nullptr) check(driver().host_allocate(&slot.memory, piece_bytes_, 0), "allocating pinned memory");
  check(driver().stream_wait(out_, slot.copied_in, 0), "waiting for a copy");
  const void* const from = piece.kind == Kind::kBroadcast ? piece.output : piece.input;
  if (reads_input(piece, rank_))
    check(driver().copy_to_host(slot.memory, address(from), piece.count * size_of(piece.dtype), out_),
          "copying a tensor to the host");
  check(driver().event_record(slot.copied_out, out_), "recording the end of a copy");
}

/// At first it looks all the time, because a piece takes less time than a sleep.
void StagedRun::wait_for(cuda::Event event) const {
  using Clock = std::chrono::steady_clock;
  constexpr std::chrono::microseconds kSpin{100}, kPause{20};
  const auto spins_until = Clock::now() + kSpin;
  for (;;) {
    const cuda::Result result = cuda::query(event);
    if (result != cuda::kNotReady) return check(result, "copying a tensor to the host");
    if (Clock::now() < spins_until) continue;
    if (is_given_up_()) throw Error(Errc::kAborted, "copying a tensor to the host was ended");
    std::this_thread::sleep_for(kPause);
  }
}

bool StagedRun::is_idle() const {
  for (const cuda::Event event : {begun_, ended_}) {
    if (cuda::query(event) != cuda::kSuccess) return false;
  }
  return std::all_of(slots_.begin(), slots_.end(), [](const Slot& slot) {
    return cuda::query(slot.copied_out) == cuda::kSuccess && cuda::query(slot.copied_in) == cuda::kSuccess;
  });
}

/// The input may be what the caller's stream is busy with for as long as it likes, so each wait can be given up.
Status StagedRun::run_whole(const Call& call) {
  const std::size_t in = call.count * size_of(call.dtype), out = result_count(call, rank_) * size_of(call.dtype);
  wait_for(ended_);  // the last copies
  std::byte* const memory = room(std::max<std::size_t>(1, in + out));
  if (in != 0) {
    check(driver().copy_to_host(memory, address(call.input), in, stream_), "copying a tensor to the host");
    check(driver().event_record(begun_, stream_), "recording the end of a copy");
    wait_for(begun_);
  }
  Status status = host_.run(on_host(call, memory, memory + in));
  if (!status.ok() || out == 0) return status;
  check(driver().copy_to_device(address(call.output), memory + in, out, stream_), "copying a result to the GPU");
  check(driver().event_record(ended_, stream_), "recording the end of copies");
  return status;
}

std::byte* StagedRun::room(std::size_t bytes) {
  if (bytes > bytes_) {
    if (memory_ != nullptr) check(driver().host_free(memory_), "freeing pinned memory");
    memory_ = nullptr;
    bytes_ = 0;
    check(driver().host_allocate(&memory_, bytes, 0), "allocating pinned memory");
    bytes_ = bytes;
  }
  return static_cast<std::byte*>(memory_);
}

}  // namespace runjob::runtime::nccl
