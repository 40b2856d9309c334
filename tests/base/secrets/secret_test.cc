#include "base/secrets/secret.hpp"

#include <cstring>
#include <utility>

#include "tests/core_dump.hpp"

using namespace runjob;

TEST_CASE("no core dump has a secret, a copy of it, or one that is gone", "[unit]") {
  Secret secret;
  for (std::size_t i = 0; i < secret.bytes().size(); ++i) secret.bytes()[i] = static_cast<unsigned char>(7 * i + 3);
  const MaskedKey key = masked(secret);
  {
    const Secret copy = secret;
    Secret assigned;
    assigned = copy;
    CHECK(assigned == secret);
    Secret moved = std::move(assigned);
    CHECK(moved == secret);
    assigned = copy;  // what was moved from may be assigned to
    CHECK(assigned == secret);
    assigned = std::move(moved);
    CHECK(assigned == secret);
    CHECK(copies_in_core_dump(key) == 0);
  }
  CHECK(copies_in_core_dump(key) == 0);
  CHECK_FALSE(Secret() == secret);

  // The search finds a key elsewhere.
  const std::vector<unsigned char> heap(secret.bytes().begin(), secret.bytes().end());
  CHECK(copies_in_core_dump(key) >= 1);
}

TEST_CASE("a wiped text is empty, and its bytes are zeros", "[unit]") {
  std::string text(100, 'x');
  const char* bytes = text.data();
  wipe(text);
  CHECK(text.empty());
  CHECK(std::string(bytes, 100) == std::string(100, '\0'));
}
