#include "runtime/operations/adasum.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <exception>
#include <numeric>
#include <string>
#include <vector>

#include "runtime/collectives/packing.hpp"
#include "runtime/operations/adasum_factors.hpp"
#include "runtime/operations/slice_arithmetic.hpp"

namespace runjob::runtime {
namespace {

/// Between hosts, larger sums are added in an order that depends on the place in the message.
constexpr std::size_t kMostDotBytes = 32u << 10;

class Adasum {
 public:
  Adasum(const RunCall& run, EngineTimeline& timeline, FusionBuffer& buffer, const FusionKey& key,
         std::span<const FusedTensor> tensors, int rank, int size)
      : run_(run),
        timeline_(timeline),
        key_(key),
        tensors_(tensors),
        rank_(static_cast<std::size_t>(rank)),
        size_(static_cast<std::size_t>(size)),
        element_(size_of(key.wire)),
        parts_(size_),
        dots_(tensors.size() * size_ * size_) {
    for (const FusedTensor& tensor : tensors_)
      for (std::size_t peer = 0; peer < size_; ++peer) parts_[peer] += slice_of(tensor, peer);
    const std::size_t count = std::accumulate(parts_.begin(), parts_.end(), std::size_t{0});
    // The slices of one tensor lie one after the other in the tensor itself.
    is_packed_ = tensors.size() > 1 || key.wire != key.dtype;
    const std::size_t bytes = padded(count * element_), bytes_received = padded(size_ * parts_[rank_] * element_);
    const std::size_t room = bytes_received + (is_packed_ ? bytes : 0);
    if (!buffer.has_room(room)) begin_stage("INIT_FUSION_BUFFER");
    received_ = buffer.room(room);
    packed_ = received_ + bytes_received;
  }

  Status run() {
    Status status = exchange_slices();
    if (!status.ok()) return status;
    begin_stage("ADASUM_DOT_PRODUCTS");
    visit_slices([&](std::size_t tensor, std::span<const void* const> slices, std::byte*, std::size_t count) {
      find_dot_products(key_.wire, slices, count, dots_of(tensor));
    });
    status = add_dot_products();
    if (!status.ok()) return status;
    begin_stage("ADASUM_SUM");
    visit_slices([&](std::size_t tensor, std::span<const void* const> slices, std::byte* result, std::size_t count) {
      sum_with_factors(key_.wire, result, slices, count, factors_of(tensor));
    });
    return gather_slices();
  }

 private:
  static std::size_t padded(std::size_t bytes) {
    constexpr std::size_t kAlignment = 64;
    return (bytes + kAlignment - 1) / kAlignment * kAlignment;
  }

  std::size_t slice_of(const FusedTensor& tensor, std::size_t peer) const {
    return static_cast<std::size_t>(
        scattered_rows(static_cast<std::int64_t>(tensor.count), static_cast<int>(peer), static_cast<int>(size_)));
  }
  bool is_compressed() const { return key_.wire != key_.dtype; }
  double factor_before() const { return is_compressed() ? key_.prescale : 1; }
  double factor_after() const { return is_compressed() && std::abs(key_.postscale) > 1 ? key_.postscale : 1; }

  /// Gives each rank its slices of all tensors. Here those of each rank then lie one after the other, by rank.
  Status exchange_slices() {
    Call call;
    call.kind = Kind::kAlltoall;
    call.input = tensors_.front().input;
    if (is_packed_) {
      begin_stage("MEMCPY_IN_FUSION_BUFFER");
      visit_packed([&](const FusedTensor& tensor, std::size_t first, std::size_t count, std::byte* place) {
        const auto* const from = static_cast<const std::byte*>(tensor.input) + first * size_of(key_.dtype);
        convert(key_.wire, place, key_.dtype, from, count, factor_before());
      });
      call.input = packed_;
    }
    call.output = received_;
    call.count = std::accumulate(parts_.begin(), parts_.end(), std::size_t{0});
    call.counts.assign(size_, parts_[rank_]);
    call.send_counts = parts_;
    call.largest_part = parts_.front();  // of a tensor, no slice is larger than the first one
    call.has_equal_parts = parts_.front() == parts_.back();
    return run_call(call, key_.wire);
  }

  Status add_dot_products() {
    const std::size_t each = size_ * size_, most = std::max<std::size_t>(1, kMostDotBytes / (each * sizeof(double)));
    for (std::size_t first = 0; first < tensors_.size(); first += most) {
      Call call;
      call.kind = Kind::kAllreduce;
      call.input = call.output = dots_of(first).data();
      call.count = std::min(most, tensors_.size() - first) * each;
      Status status = run_call(call, DType::kFloat64);
      if (!status.ok()) return status;
    }
    return {};
  }

  /// Collects the slices of the result.
  Status gather_slices() {
    Call call;
    call.kind = Kind::kAllgather;
    call.input = received_;
    call.output = is_packed_ ? packed_ : tensors_.front().output;
    call.count = parts_[rank_];
    call.counts = parts_;
    Status status = run_call(call, key_.wire);
    if (!status.ok() || !is_packed_) return status;
    begin_stage("MEMCPY_OUT_FUSION_BUFFER");
    visit_packed([&](const FusedTensor& tensor, std::size_t first, std::size_t count, std::byte* place) {
      auto* const to = static_cast<std::byte*>(tensor.output) + first * size_of(key_.dtype);
      convert(key_.dtype, to, key_.wire, place, count, factor_after());
    });
    return status;
  }

  /// Calls visit(tensor, first, count, place) for each slice of the packed tensors: in the order of the ranks, and then
  /// of the tensors.
  template <class Visit>
  void visit_packed(Visit visit) {
    std::vector<std::size_t> firsts(tensors_.size());
    std::byte* place = packed_;
    for (std::size_t peer = 0; peer < size_; ++peer) {
      for (std::size_t tensor = 0; tensor < tensors_.size(); ++tensor) {
        const std::size_t count = slice_of(tensors_[tensor], peer);
        visit(tensors_[tensor], firsts[tensor], count, place);
        firsts[tensor] += count;
        place += count * element_;
      }
    }
  }

  /// Calls visit(index, slices, result, count) for each tensor with this rank's slice of all ranks' tensors. The slice
  /// of the result lies in place of rank 0's.
  template <class Visit>
  void visit_slices(Visit visit) {
    std::vector<const void*> slices(size_);
    std::size_t before = 0;
    for (std::size_t tensor = 0; tensor < tensors_.size(); ++tensor) {
      for (std::size_t peer = 0; peer < size_; ++peer)
        slices[peer] = received_ + (peer * parts_[rank_] + before) * element_;
      const std::size_t count = slice_of(tensors_[tensor], rank_);
      visit(tensor, slices, received_ + before * element_, count);
      before += count;
    }
  }

  std::span<double> dots_of(std::size_t tensor) {
    return std::span(dots_).subspan(tensor * size_ * size_, size_ * size_);
  }

  /// The factors of the ranks' slices. Those of the ranks' tensors are found with their scale.
  std::vector<double> factors_of(std::size_t tensor) {
    const double prescale = is_compressed() ? 1 : key_.prescale, postscale = key_.postscale / factor_after();
    std::vector<double> factors(size_);
    for (double& dot : dots_of(tensor)) dot *= prescale * prescale;
    find_adasum_factors(dots_of(tensor), factors);
    for (double& factor : factors) factor *= prescale * postscale;
    return factors;
  }

  Status run_call(Call& call, DType dtype) {
    call.dtype = dtype;
    begin_stage("QUEUE");
    if (timeline_.is_on()) {
      call.on_stage = [this](const char* stage, const char* algorithm) { begin_stage(stage, algorithm); };
    }
    return run_(call);
  }

  void begin_stage(const char* stage, const char* algorithm = nullptr) {
    begin_stage_of(timeline_, tensors_, stage, algorithm);
  }

  const RunCall& run_;
  EngineTimeline& timeline_;
  const FusionKey& key_;
  const std::span<const FusedTensor> tensors_;
  const std::size_t rank_, size_, element_;
  std::vector<std::size_t> parts_;  ///< by rank: the elements of its slices of all tensors
  std::vector<double> dots_;        ///< a matrix for each tensor
  bool is_packed_ = false;
  std::byte* received_ = nullptr;  ///< this rank's slices of all ranks' tensors
  std::byte* packed_ = nullptr;    ///< all tensors, by slices
};

}  // namespace

Status run_adasum(const RunCall& run, EngineTimeline& timeline, FusionBuffer& buffer, const FusionKey& key,
                  std::span<const FusedTensor> tensors, int rank, int size) {
  try {
    return Adasum(run, timeline, buffer, key, tensors, rank, size).run();
  } catch (const std::exception& error) {  // the other ranks cannot go on without this one
    return Status(Errc::kSystem, std::string("Adasum: ") + error.what());
  }
}

}  // namespace runjob::runtime
