#include "runtime/collectives/shm/tuning/algorithm.hpp"

#include <string>

#include "tests/catch.hpp"
#include "tests/runtime/collectives/shm/algorithms.hpp"

using namespace runjob::runtime;

TEST_CASE("the timeline names the path, and streaming stores into either end of it", "[runtime][unit]") {
  const auto name = [](const Algorithm& algorithm) { return std::string(name_of(algorithm)); };
  CHECK(name(kOneStep) == "one step");
  CHECK(name(kStreamedOneStep) == "streamed one step");
  CHECK(name(kPipeline) == "pipeline");
  for (const Algorithm& algorithm : {kStreamedPipeline, kStreamedOutput, kStreamed})
    CHECK(name(algorithm) == "streamed pipeline");
  CHECK(name(kCma) == "CMA");
  CHECK(name({Path::kSymmetric}) == "symmetric memory");
}

TEST_CASE("a path on which ranks write each other's buffers is one on which they read them", "[runtime][unit]") {
  for (const Path path : {Path::kOneStep, Path::kPipeline, Path::kCma, Path::kSymmetric})
    CHECK((reads_buffers(path) || !writes_buffers(path)));
  CHECK(writes_buffers(Path::kSymmetric));
  CHECK_FALSE(writes_buffers(Path::kCma));
}
