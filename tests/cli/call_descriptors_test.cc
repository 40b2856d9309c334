#include "cli/call_descriptors.hpp"

#include "base/error.hpp"
#include "tests/catch.hpp"

using namespace runjob;

namespace {

std::optional<CallDescriptors> read(const std::vector<std::string>& arguments, const JobSpec& spec = {}) {
  return call_descriptors(parse_command_line(arguments), spec);
}

}  // namespace

TEST_CASE("two descriptors, or none", "[unit]") {
  CHECK_FALSE(read({"true"}));
  const auto call = read({"--serve-call=5,12", "true"});
  REQUIRE(call);
  CHECK(call->function == 5);
  CHECK(call->caller == 12);
}

TEST_CASE("what are no descriptors is an error", "[unit]") {
  for (const char* text :
       {"--serve-call=5", "--serve-call=", "--serve-call=5,", "--serve-call=5,x", "--serve-call=0,1"})
    CHECK_THROWS_WITH(read({text}), ContainsSubstring("--serve-call: "));
}

TEST_CASE("a rank that srun has started starts none", "[unit]") {
  JobSpec spec;
  spec.slurm_task.emplace();
  CHECK_THROWS_WITH(read({"--serve-call=5,6"}, spec), ContainsSubstring("srun has started this process"));
}
