#include "launcher/elastic/notice_sender.hpp"

#include <vector>

#include "tests/catch.hpp"

using namespace runjob;

TEST_CASE("a notice is sent when it changes, and a later one contains all that an earlier one did", "[unit]") {
  std::vector<rendezvous::Notice> sent;
  NoticeSender notices([&sent](const rendezvous::Notice& notice) { sent.push_back(notice); });
  notices.outdate(0, /*only_added=*/true);
  CHECK(notices.is_outdated(0));
  CHECK(sent.back().only_added);
  notices.let_go(2);
  CHECK(sent.size() == 1);
  notices.outdate(0, /*only_added=*/false);
  CHECK_FALSE(sent.back().only_added);
  CHECK(sent.back().leaving == std::vector<int>{2});
  notices.outdate(0, /*only_added=*/true);
  CHECK_FALSE(sent.back().only_added);  // another change of this generation has removed some
  CHECK_FALSE(notices.has_ended(0));
  notices.end(0, "rank 1 was killed");
  CHECK(notices.has_ended(0));
  notices.end(0, "rank 0 lost its connection");
  REQUIRE(sent.size() == 4);
  CHECK(sent.back().reason == "rank 1 was killed");
  CHECK(sent.back().outdated == 0);
  CHECK(sent.back().sequence == 4);
  notices.outdate(1, /*only_added=*/true);
  CHECK(sent.back().only_added);
  CHECK(sent.back().ended == 0);
}
