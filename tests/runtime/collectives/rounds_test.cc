#include "runtime/collectives/rounds.hpp"

#include "runtime/collectives/backend.hpp"
#include "tests/catch.hpp"
#include "tests/runtime/collectives/shm/thread_ranks.hpp"

using namespace runjob::runtime;

TEST_CASE("rounds reduce in the order of the ranks unless they say otherwise", "[runtime][unit]") {
  const Layout layout = small_layout(1);
  const TestSegment segment(layout);
  const Channels channels(segment.data(), layout, options_of(0));
  const float inputs[] = {1e8f, 1, -1e8f};
  const std::vector<const void*> pointers{&inputs[0], &inputs[1], &inputs[2]};
  float sum = -1;
  Call call{.kind = Kind::kAllreduce, .dtype = DType::kFloat32, .output = &sum, .count = 1};
  channels.rounds.reduce(call, pointers, 1);
  CHECK(sum == (1e8f + 1) + -1e8f);
  CHECK(channels.rounds.traffic().messages == 0);
  CHECK(channels.rounds.most_data_bytes(Kind::kAllreduce) == channels.rounds.most_bytes());
}
