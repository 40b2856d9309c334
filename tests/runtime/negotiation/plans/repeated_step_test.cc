#include "runtime/negotiation/plans/repeated_step.hpp"

#include <algorithm>
#include <set>
#include <string>
#include <utility>

#include "tests/catch.hpp"

using namespace runjob::runtime;

namespace {

/// The counts of operations that letters stand for.
std::string counts(RepeatedStep& step, const std::string& operations) {
  std::string text;
  for (const char operation : operations) text += std::to_string(step.next(static_cast<std::uint64_t>(operation)));
  return text;
}

std::string repeated(const std::string& text, int times) {
  std::string all;
  for (int i = 0; i < times; ++i) all += text;
  return all;
}

}  // namespace

TEST_CASE("one operation over and over is the same one", "[runtime][unit]") {
  RepeatedStep step;
  CHECK(counts(step, "aaaaaaaa") == "00000000");
}

TEST_CASE("equal operations of a step are told apart once it has come twice", "[runtime][unit]") {
  RepeatedStep step;
  counts(step, "pq");
  counts(step, repeated("abbbc", 2));
  CHECK(counts(step, "abbbcabbbc") == "0012000120");
  CHECK(step.expected('a') == 0u);
  CHECK_FALSE(step.expected('b'));
}

TEST_CASE("a step may differ now and then", "[runtime][unit]") {
  RepeatedStep step;
  counts(step, repeated("abbbc", 3));
  CHECK(counts(step, "abbxbc") == "001020");    // an operation more
  CHECK(counts(step, "abbbcxx") == "0012000");  // also twice
  CHECK(counts(step, "abbbc") == "00120");
  counts(step, "abbc");  // one less
  CHECK(counts(step, "abbbcabbbc").substr(5) == "00120");
}

TEST_CASE("another step takes the place of one that does not come any more", "[runtime][unit]") {
  RepeatedStep step;
  counts(step, repeated("abbbc", 3));
  SECTION("a longer one") {
    counts(step, repeated("abbcdbb", 3));
    std::string of_b;
    const std::string operations = "abbcdbb", found = counts(step, operations);
    for (std::size_t i = 0; i < operations.size(); ++i) of_b += operations[i] == 'b' ? found.substr(i, 1) : "";
    std::sort(of_b.begin(), of_b.end());
    CHECK(of_b == "0123");
  }
  SECTION("one operation alone") {
    counts(step, "dddddddd");
    CHECK(step.expected('d') == 0u);
    CHECK(counts(step, "dddd") == "0000");
  }
}

TEST_CASE("all ranks count alike, wherever in a step they have recognised it", "[runtime][unit]") {
  const std::string operations = "abbcbd";
  RepeatedStep a, b;
  counts(a, repeated(operations, 4));
  counts(b, operations.substr(3) + repeated(operations, 4));
  CHECK(counts(a, operations) == counts(b, operations));
}

TEST_CASE("a step of many operations is recognised, up to a limit", "[runtime][unit]") {
  for (const auto& [length, is_recognised] : {std::pair{RepeatedStep::kLongest / 2, true}, {600, false}}) {
    RepeatedStep step;
    std::set<std::uint32_t> found;
    for (std::size_t i = 0; i < 6 * length; ++i) {
      const std::uint32_t count = step.next(i % length == 0 ? 1 : 2);
      if (i >= 5 * length && i % length != 0) found.insert(count);
    }
    CHECK((found.size() == length - 1) == is_recognised);
  }
}
