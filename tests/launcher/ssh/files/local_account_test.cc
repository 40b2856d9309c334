#include "launcher/ssh/files/local_account.hpp"

#include <unistd.h>

#include "tests/catch.hpp"

using namespace runjob;

TEST_CASE("the account is ours", "[unit]") {
  const LocalAccount account = local_account();
  CHECK(account.user_id == std::to_string(::getuid()));
  CHECK_FALSE(account.name.empty());
  CHECK(account.home.front() == '/');
  CHECK_FALSE(account.host_name.empty());
}
