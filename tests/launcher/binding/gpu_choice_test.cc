#include "launcher/binding/gpu_choice.hpp"

#include "tests/catch.hpp"

using namespace runjob;

TEST_CASE("a choice of GPUs is read as it was made, and stays on its host", "[unit]") {
  Environment environment{{"PATH", "/bin"}};
  CHECK_FALSE(chosen_gpus(environment));
  choose_gpus(environment, "2,GPU-5f");
  CHECK(chosen_gpus(environment) == "2,GPU-5f");
  choose_gpus(environment, "");
  CHECK(chosen_gpus(environment) == "");  // none of them, which is not all of them
  CHECK(environment == Environment{{"PATH", "/bin"}, {"CUDA_VISIBLE_DEVICES", ""}});
  CHECK(chooses_gpus("CUDA_VISIBLE_DEVICES"));
  CHECK_FALSE(chooses_gpus("PATH"));
}
