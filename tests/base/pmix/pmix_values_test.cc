#include "base/pmix/pmix_values.hpp"

#include <chrono>
#include <functional>
#include <map>
#include <thread>
#include <utility>

#include "tests/catch.hpp"

using namespace runjob;
using namespace std::chrono_literals;

// tests/python/mpi/test_mpirun.py and tests/python/slurm/test_slurm_steps.py have the same over real launchers.

namespace {

/// A stand-in for libpmix, which has a launcher only where one has started the process: it keeps what is put, and
/// answers when the test calls `answer`.
struct StandIn {
  std::map<std::string, std::string> values;
  std::function<void()> answer;  // of the last question
  pmix::Status get_status = pmix::kSuccess;
};
StandIn stand_in;

pmix::Status put(std::uint8_t scope, const char* key, pmix::Value* value) {
  CHECK(scope == pmix::kScopeGlobal);
  CHECK(value->type == pmix::kByteObject);
  stand_in.values[key] = std::string(value->data.bytes.bytes, value->data.bytes.size);
  return pmix::kSuccess;
}

pmix::Status get(const pmix::Proc* rank, const char* key, const pmix::Info*, std::size_t, pmix::ValueFound found,
                 void* context) {
  if (stand_in.get_status != pmix::kSuccess) return stand_in.get_status;
  stand_in.answer = [rank, key, found, context] {  // libpmix reads these two until it answers
    const auto value = stand_in.values.find(std::string(key) + "/" + std::to_string(rank->rank));
    if (value == stand_in.values.end()) return found(-46, nullptr, context);
    pmix::Value bytes{};
    bytes.type = pmix::kByteObject;
    bytes.data.bytes = {value->second.data(), value->second.size()};
    found(pmix::kSuccess, &bytes, context);
  };
  return pmix::kSuccess;
}

PmixLibrary library() {
  stand_in = {};
  PmixLibrary functions;
  functions.put = put;
  functions.get = get;
  return functions;
}

}  // namespace

TEST_CASE("a value is published as it is", "[unit]") {
  const PmixLibrary pmix = library();
  CHECK(put_pmix_value(pmix, "key", std::string("a\0b", 3)) == pmix::kSuccess);
  CHECK(stand_in.values["key"] == std::string("a\0b", 3));
}

TEST_CASE("an answer that comes later ends the wait, and stays", "[unit]") {
  const PmixLibrary pmix = library();
  stand_in.values["key/3"] = "value";
  const PmixQuestion question(pmix, pmix::Proc{}, 3, "key");
  CHECK_FALSE(question.wait(std::chrono::steady_clock::now()));
  std::thread later(stand_in.answer);
  for (int time = 0; time < 2; ++time) {
    const auto answer = question.wait(std::chrono::steady_clock::now() + 60s);
    REQUIRE(answer);
    CHECK(answer->status == pmix::kSuccess);
    CHECK(answer->bytes == "value");
  }
  later.join();
}

TEST_CASE("a value that nobody has published, and a question that is refused, have a status and no bytes", "[unit]") {
  const PmixLibrary pmix = library();
  const bool is_refused = GENERATE(false, true);
  if (is_refused) stand_in.get_status = pmix::kUnreachable;
  const PmixQuestion question(pmix, pmix::Proc{}, 3, "key");
  if (!is_refused) stand_in.answer();
  const auto answer = question.wait(std::chrono::steady_clock::now() + 60s);
  REQUIRE(answer);
  CHECK(answer->status == (is_refused ? pmix::kUnreachable : -46));
  CHECK(answer->bytes.empty());
}

TEST_CASE("an answer may come when its question is gone", "[unit]") {
  const PmixLibrary pmix = library();
  stand_in.values["key/3"] = "value";
  { const PmixQuestion question(pmix, pmix::Proc{}, 3, "key"); }
  stand_in.answer();
}
