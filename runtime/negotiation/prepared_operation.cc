#include "runtime/negotiation/prepared_operation.hpp"

#include <algorithm>
#include <numeric>
#include <utility>

namespace runjob::runtime {
namespace {

/// Sets the parts and the result of an operation that has a part of, or for, each rank.
void divide(const Signature& signature, const Decision& decision, int rank, int size, PreparedOperation& prepared) {
  const auto ranks = static_cast<std::size_t>(size), own = static_cast<std::size_t>(rank);
  Shape rows;  // by rank: gathered from it, received from it, or scattered to it
  if (signature.kind == Kind::kAllgather) rows = decision.first_extents;
  for (std::size_t peer = 0; peer < ranks; ++peer) {
    if (signature.kind == Kind::kAlltoall) rows.push_back(decision.first_extents.at(peer * ranks + own));
    if (signature.kind == Kind::kReducescatter)
      rows.push_back(scattered_rows(signature.shape.front(), static_cast<int>(peer), size));
  }
  Call& call = prepared.call;
  const std::int64_t row = row_elements(signature.shape);
  for (const std::int64_t each : rows) call.counts.push_back(static_cast<std::size_t>(each * row));
  for (const std::int64_t each : signature.splits) call.send_counts.push_back(static_cast<std::size_t>(each * row));
  if (signature.kind == Kind::kAlltoall) {
    const auto [least, most] = std::minmax_element(decision.first_extents.begin(), decision.first_extents.end());
    call.largest_part = static_cast<std::size_t>(row * *most);
    call.has_equal_parts = *least == *most;
  }
  prepared.result = signature.shape;
  prepared.result.front() =
      signature.kind == Kind::kReducescatter ? rows[own] : std::accumulate(rows.begin(), rows.end(), std::int64_t{0});
  prepared.result_bytes = static_cast<std::size_t>(element_count(prepared.result)) * size_of(signature.dtype);
  if (signature.kind != Kind::kReducescatter) prepared.received_splits = std::move(rows);
}

bool moves_nothing(const Signature& signature, const Decision& decision) {
  if (signature.kind == Kind::kBarrier || signature.kind == Kind::kJoin) return true;
  if (!has_own_first_extent(signature.kind)) return element_count(signature.shape) == 0;
  const auto has_rows = [](std::int64_t rows) { return rows != 0; };
  const bool rows = std::any_of(decision.first_extents.begin(), decision.first_extents.end(), has_rows);
  return !rows || row_elements(signature.shape) == 0;
}

}  // namespace

PreparedOperation prepare_operation(const Signature& signature, const Decision& decision, int rank, int size) {
  PreparedOperation prepared;
  Call& call = prepared.call;
  call.kind = signature.kind;
  call.dtype = signature.dtype;
  call.op = signature.op;
  call.root = signature.root;
  call.memory.kind = signature.memory;
  call.prescale = signature.prescale;
  call.postscale = signature.postscale;
  call.count = static_cast<std::size_t>(element_count(signature.shape));
  if (has_own_first_extent(signature.kind) || signature.kind == Kind::kReducescatter)
    divide(signature, decision, rank, size, prepared);
  prepared.moves_nothing = moves_nothing(signature, decision);
  return prepared;
}

}  // namespace runjob::runtime
