#include "runtime/job/state_transfer.hpp"

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/error.hpp"

namespace runjob::runtime {
namespace {

/// The part of a state after which the ranks that wait for the others have a sign of life, so that no stall is reported
/// for them.
constexpr std::size_t kPieceBytes = std::size_t{64} << 20;

/// Up to so many bytes for all ranks that lack the state together, an alltoall in which the others receive nothing is
/// faster than a process set: on one host 0.3 ms instead of 2 ms for 4 KiB.
constexpr std::int64_t kMostInAlltoall = 1 << 20;

/// The facts about a rank that decide who takes part.
struct Part {
  std::int64_t lacks = 0, blocks = 0, bytes = 0;
};

void run(Engine& engine, const Submission& submission) {
  engine.run(lent(submission), std::nullopt).status.throw_if_failed();
}

std::vector<Part> exchange(Engine& job, const Part& own, std::size_t size) {
  std::vector<Part> all(size);
  Submission submission;
  submission.name = "runjob.elastic.receivers";
  submission.signature.kind = Kind::kAllgather;
  submission.signature.shape = {sizeof own};
  submission.input = &own;
  submission.output = all.data();
  submission.output_bytes = all.size() * sizeof own;
  run(job, submission);
  return all;
}

/// The ranks that take part: rank 0, and those that lack the state.
std::vector<int> members_of(const std::vector<Part>& parts, const Members& ranks) {
  std::vector<int> members{0};
  for (std::size_t rank = 1; rank < parts.size(); ++rank) {
    if (parts[rank].blocks != parts[0].blocks || parts[rank].bytes != parts[0].bytes)
      throw Error(Errc::kMismatch,
                  fmt::format("{} has a state of another size than {}; make the same state on all ranks",
                              rank_text(static_cast<int>(rank), ranks), rank_text(0, ranks)));
    if (parts[rank].lacks != 0) members.push_back(static_cast<int>(rank));
  }
  return members;
}

/// Sends the piece of `block` that begins at `first`.
void broadcast(Engine& members, std::span<std::byte> block, std::size_t first) {
  const std::span<std::byte> piece = block.subspan(first, std::min(kPieceBytes, block.size() - first));
  Submission submission;
  submission.name = "runjob.elastic.state";
  submission.signature.kind = Kind::kBroadcast;
  submission.signature.shape = {static_cast<std::int64_t>(piece.size())};
  submission.input = submission.output = piece.data();
  run(members, submission);
}

/// Sends the whole state at once: `bytes`, in a job of `size` ranks.
void send_in_alltoall(Engine& job, std::span<const std::span<std::byte>> blocks, const std::vector<int>& members,
                      int rank, std::size_t size, std::int64_t bytes) {
  std::vector<std::byte> state, sent;
  Submission submission;
  submission.name = "runjob.elastic.state";
  submission.signature.kind = Kind::kAlltoall;
  submission.signature.splits.assign(size, 0);
  if (rank == 0) {
    for (const std::span<std::byte> block : blocks) state.insert(state.end(), block.begin(), block.end());
    for (auto receiver = members.begin() + 1; receiver != members.end(); ++receiver) {
      submission.signature.splits[static_cast<std::size_t>(*receiver)] = bytes;
      sent.insert(sent.end(), state.begin(), state.end());
    }
  }
  submission.signature.shape = {static_cast<std::int64_t>(sent.size())};
  submission.input = sent.data();
  const bool receives = rank != 0 && std::binary_search(members.begin(), members.end(), rank);
  if (receives) state.resize(static_cast<std::size_t>(bytes));
  submission.output = receives ? state.data() : nullptr;
  submission.output_bytes = receives ? state.size() : 0;
  run(job, submission);
  if (!receives) return;
  auto from = state.begin();
  for (const std::span<std::byte> block : blocks) {
    std::copy_n(from, block.size(), block.begin());
    from += static_cast<std::ptrdiff_t>(block.size());
  }
}

/// Returns when all ranks of the job have come so far.
void wait_for_all(Engine& job) {
  Submission submission;
  submission.name = "runjob.elastic.sent";
  submission.signature.kind = Kind::kBarrier;
  run(job, submission);
}

/// Calls send(block, first byte) for each piece.
template <class Send>
void for_each_piece(std::span<const std::span<std::byte>> blocks, Send send) {
  for (const std::span<std::byte> block : blocks) {
    for (std::size_t first = 0; first < block.size(); first += kPieceBytes) send(block, first);
  }
}

}  // namespace

void transfer_state(const Job& job, std::span<const std::span<std::byte>> blocks, bool lacks) {
  const auto size = static_cast<std::size_t>(job.place.size);
  Part own{lacks ? 1 : 0, static_cast<std::int64_t>(blocks.size()), 0};
  for (const std::span<std::byte> block : blocks) own.bytes += static_cast<std::int64_t>(block.size());
  const std::vector<int> members = members_of(exchange(*job.engine, own, size), job.members);
  if (members.size() == 1 || own.bytes == 0) return;
  if (members.size() == size)
    return for_each_piece(blocks, [&](auto block, std::size_t first) { broadcast(*job.engine, block, first); });
  if (own.bytes <= kMostInAlltoall / static_cast<std::int64_t>(members.size() - 1))
    return send_in_alltoall(*job.engine, blocks, members, job.place.rank, size, own.bytes);
  job.process_sets->with_set(members, [&](Engine* set) {
    for_each_piece(blocks, [&](auto block, std::size_t first) {
      if (set != nullptr) broadcast(*set, block, first);
      wait_for_all(*job.engine);
    });
  });
}

}  // namespace runjob::runtime
