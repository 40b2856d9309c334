#include "launcher/elastic/host_choice.hpp"

#include "tests/catch.hpp"

using namespace runjob;
using namespace std::chrono_literals;

TEST_CASE("the next process runs where one failed, else on the first host with a free slot", "[unit]") {
  const Exclusions::TimePoint now{};
  ProcessRoll roll;
  for (int host = 0; host < 3; ++host) roll.hosts[host] = {"s" + std::to_string(host + 1), 1, true};
  Exclusions exclusions(std::nullopt, 0);
  HostChoice choice;
  std::vector<int> asked;
  const auto can_join = [&asked](int host) {
    asked.push_back(host);
    return host != 3;
  };
  choice.prefer(2);
  CHECK(choice.next(roll, exclusions, now, can_join) == 2);
  CHECK(choice.next(roll, exclusions, now, can_join) == 0);
  roll.processes[0].host = 0;  // it is full
  CHECK(choice.next(roll, exclusions, now, can_join) == 1);
  choice.prefer(0);
  CHECK(choice.next(roll, exclusions, now, can_join) == 1);
  exclusions.exclude(1, now);
  CHECK(choice.next(roll, exclusions, now, can_join) == 2);
  roll.hosts[2].usable = false;
  roll.hosts[3] = {"s4", 1, true};
  asked.clear();
  CHECK_FALSE(choice.next(roll, exclusions, now, can_join));
  CHECK(asked == std::vector<int>{3});  // the others have no room
}
