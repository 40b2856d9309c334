#pragma once

#include <future>
#include <string>
#include <vector>

#include "runtime/collectives/backend.hpp"
#include "tests/catch.hpp"

/// Ranks that all live in this process, each with a backend or a transport of its own.
namespace runjob::runtime {

/// The backends or transports that `make` returns for the ranks from 0, connected with each other.
template <class Make>
auto connected_ranks(int size, const Make& make) {
  std::vector<decltype(make(0))> ranks;
  std::vector<std::string> addresses;
  for (int rank = 0; rank < size; ++rank) {
    ranks.push_back(make(rank));
    addresses.push_back(ranks.back()->address());
  }
  std::vector<std::future<Status>> statuses;
  for (const auto& rank : ranks) {
    statuses.push_back(std::async(std::launch::async, [&] { return rank->connect(addresses); }));
  }
  for (auto& status : statuses) REQUIRE(status.get().message().empty());
  return ranks;
}

inline std::future<Status> start(DataBackend& backend, const Call& call) {
  return std::async(std::launch::async, [&backend, call] { return backend.run(call); });
}

/// The sum of the ranks' `values`, in place.
inline Call sum(std::vector<float>& values) {
  return {.kind = Kind::kAllreduce,
          .dtype = DType::kFloat32,
          .input = values.data(),
          .output = values.data(),
          .count = values.size()};
}

}  // namespace runjob::runtime
