#pragma once

#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "runtime/engine/control_message.hpp"
#include "runtime/engine/fused_allreduce.hpp"
#include "runtime/engine/fusion_plan.hpp"
#include "runtime/engine/handle_table.hpp"
#include "runtime/engine/run_operation.hpp"
#include "runtime/engine/submission.hpp"

namespace runjob::runtime {

/// An operation that all ranks have agreed to run. The pointers are lent until it is done.
struct AgreedOperation {
  Decision decision;
  /// Without buffers for a rank that has joined, while the decision is for_joined: then it gets zeros.
  Submission* submission = nullptr;
  Completion::Result* result = nullptr;
  Status status = {};  ///< once it is done
  // The runner's.
  std::size_t left = 0;  ///< what of it is not done
  bool is_begun = false;
};

/// The user's part in what is run together; the same on all ranks.
struct FusionSettings {
  std::size_t threshold_bytes = 128u << 20;  ///< the most that is run as one; 0: nothing is
  bool mixes_groups = true;                  ///< tensors of a grouped operation may be with others
};

/// Runs what all ranks have agreed on: allreduces together where that pays, everything else one by one.
/// Order    made from the operations alone, so that all ranks have the same one.
/// Threads  one.
class OperationRunner {
 public:
  /// Told what is done, each operation once, soon after it is.
  using OnDone = std::function<void(std::span<AgreedOperation* const>)>;

  /// For rank `rank` of `size`. `heap` may be null.
  OperationRunner(RunCall run, EngineTimeline& timeline, int rank, int size, const FusionSettings& settings,
                  const FusionAdvice& advice, std::shared_ptr<SymmetricHeap> heap);

  /// Blocks until all are done. Errors  in their status.
  void run(std::span<AgreedOperation> operations, const OnDone& on_done);

 private:
  std::vector<FusionItem> items_of(std::span<AgreedOperation> operations) const;
  Status run(std::span<AgreedOperation> operations, std::span<const FusionItem> items,
             std::span<const std::size_t> batch);
  Status run_alone(AgreedOperation& operation, std::size_t tensor);
  void begin(AgreedOperation& operation);

  const RunCall run_;
  EngineTimeline& timeline_;
  const int rank_, size_;
  const FusionLimits limits_;
  const bool mixes_groups_;
  const std::size_t most_compressed_;  ///< bytes that go through the buffer at once
  FusionBuffer buffer_;
};

}  // namespace runjob::runtime
