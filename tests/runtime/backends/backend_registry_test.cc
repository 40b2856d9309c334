#include "runtime/backends/backend_registry.hpp"

#include <nlohmann/json.hpp>

#include "base/error.hpp"
#include "tests/catch.hpp"

using namespace runjob::runtime;

TEST_CASE("a single rank needs no module", "[runtime][unit]") {
  CHECK(make_local_backend()->address().empty());
}

// This program has no folder `runjob` beside it, as librunjob.so has: the case of an incomplete installation.
TEST_CASE("a module that is not there is an error with its path", "[runtime][unit]") {
  MeshOptions options;
  options.size = 2;
  options.hosts = {0, 1};
  options.bind_address = "127.0.0.1";
  BackendSettings settings;
  settings.gloo = true;
  try {
    make_hierarchical_backend(options, settings, "");
    FAIL("made");
  } catch (const runjob::Error& error) {
    CHECK(error.code() == runjob::Errc::kUnavailable);
    CHECK_THAT(std::string(error.what()), ContainsSubstring("no backend for 2 ranks: "));
    CHECK_THAT(std::string(error.what()), ContainsSubstring("/runjob/librunjob_gloo.so"));
  }
}

TEST_CASE("absent backends are listed with the reason", "[runtime][unit]") {
  const auto list = nlohmann::json::parse(backends_json()).at("backends");
  REQUIRE(list.size() == 7);
  CHECK(list.at(0).at("name") == "shm");
  CHECK(list.at(0).at("available") == true);
  for (const auto& backend : list) {
    if (backend == list.at(0)) continue;
    CHECK(backend.at("available") == false);
    CHECK_FALSE(backend.at("reason").get<std::string>().empty());
  }
  CHECK_THAT(list.at(1).at("reason").get<std::string>(), ContainsSubstring("cannot open shared object file"));
  CHECK(list.at(3).at("name") == "nccl");
  CHECK_THAT(list.at(3).at("reason").get<std::string>(), ContainsSubstring("librunjob_gpu.so"));
  CHECK(list.at(6).at("name") == "cuda");
}
