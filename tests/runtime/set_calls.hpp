#pragma once

#include <cstdint>
#include <runjob/runjob.h>
#include <string>
#include <vector>

#include "tests/runtime/calls.hpp"
#include "tests/runtime/member_ranks.hpp"
#include "tests/runtime/rank_processes.hpp"

/// Process sets as tests use them.
namespace runjob::runtime {

using Ranks = std::vector<std::int32_t>;

/// Ranks on these hosts, whose process sets may change.
inline RankOptions with_sets(const std::vector<std::string>& hosts, const std::string& shared_memory = "1") {
  RankOptions options;
  options.hosts = hosts;
  options.environment = {{"RUNJOB_DYNAMIC_PROCESS_SETS", "1"}, {"RUNJOB_SHARED_MEMORY", shared_memory}};
  return options;
}

inline std::int32_t add_set(const Ranks& ranks) {
  std::int32_t id = -1;
  check(runjob_process_set_add(ranks.data(), static_cast<std::int32_t>(ranks.size()), &id));
  return id;
}

inline Ranks ranks_of(std::int32_t id) {
  std::int32_t count = 0;
  check(runjob_process_set_ranks(id, nullptr, 0, &count));
  Ranks ranks(static_cast<std::size_t>(count));
  check(runjob_process_set_ranks(id, ranks.data(), count, &count));
  return ranks;
}

inline Ranks all_sets() {
  std::int32_t count = 0;
  check(runjob_process_set_ids(nullptr, 0, &count));
  Ranks ids(static_cast<std::size_t>(count));
  check(runjob_process_set_ids(ids.data(), count, &count));
  return ids;
}

/// In place.
inline runjob_handle start_sum(std::int32_t set, const std::string& name, std::vector<float>& values,
                               runjob_reduce_op op = RUNJOB_SUM) {
  const auto extent = static_cast<std::int64_t>(values.size());
  runjob_handle handle = 0;
  check(runjob_allreduce_async(name.c_str(), values.data(), values.data(), &extent, 1, RUNJOB_FLOAT32, op, 1, 1, set,
                               &handle));
  return handle;
}

/// Of one number, blocking.
inline runjob_code sum(std::int32_t set, const std::string& name, float& value, runjob_reduce_op op = RUNJOB_SUM) {
  const std::int64_t one = 1;
  runjob_handle handle = 0;
  const runjob_code code =
      runjob_allreduce(name.c_str(), &value, &value, &one, 1, RUNJOB_FLOAT32, op, 1, 1, set, -1, &handle);
  return code;
}

}  // namespace runjob::runtime
