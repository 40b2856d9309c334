#include "launcher/host_sources/discovery_script.hpp"

#include <csignal>
#include <functional>
#include <sys/wait.h>
#include <vector>

#include <boost/asio/io_context.hpp>

#include "base/environment.hpp"
#include "tests/catch.hpp"

using namespace runjob;

namespace {

/// Runs the script until it has reported so often. `meanwhile` runs between its start and the first event.
struct Observed {
  Observed(
      const std::string& command, std::size_t reports, const std::function<void()>& meanwhile = [] {}) {
    boost::asio::io_context context;
    const auto note = [&](std::vector<std::string>& where, const std::string& what) {
      where.push_back(what);
      if (lists.size() + failures.size() >= reports) context.stop();
    };
    DiscoveryScript script(
        context.get_executor(), command, current_environment(),
        {[&](const std::string& list) { note(lists, list); }, [&](const std::string& why) { note(failures, why); }});
    script.start();
    meanwhile();
    context.run_for(std::chrono::seconds(60));
    script.stop();
  }

  std::vector<std::string> lists, failures;
};

}  // namespace

TEST_CASE("the whole output of a script that ends is one list, and the script is run again", "[multiproc]") {
  const Observed script("printf 's1\\n\\ns2:2\\n'", 2);
  CHECK(script.failures.empty());
  CHECK(script.lists == std::vector<std::string>{"s1\n\ns2:2\n", "s1\n\ns2:2\n"});
}

TEST_CASE("in the output of a script that does not end, an empty line ends each list", "[multiproc]") {
  const Observed script("printf 's1\\n\\n'; sleep 2; printf 's1\\n'; printf 's2\\n\\n'; sleep 600", 2);
  CHECK(script.lists == std::vector<std::string>{"s1", "s1\ns2"});
}

TEST_CASE("a long list is whole although it is read when its script has ended", "[multiproc]") {
  std::string expected;
  for (int host = 1; host <= 2000; ++host) expected += "node" + std::to_string(host) + "\n";
  const Observed script("seq -f node%.0f 2000", 1, [] {
    siginfo_t ended;
    REQUIRE(::waitid(P_ALL, 0, &ended, WEXITED | WNOWAIT) == 0);
  });
  REQUIRE(script.lists.size() == 1);
  CHECK(script.lists.front() == expected);
}

TEST_CASE("a process that a script leaves with its output open does not delay the list", "[multiproc]") {
  const Observed script("sleep 1000 & echo $!", 1);
  REQUIRE(script.lists.size() == 1);
  CHECK(::kill(static_cast<pid_t>(std::stol(script.lists.front())), SIGKILL) == 0);
}

TEST_CASE("the end of a script that fails is reported with its last line", "[multiproc]") {
  const Observed script("echo one >&2; echo 'no such cluster' >&2; exit 3", 1);
  CHECK(script.lists.empty());
  CHECK(script.failures == std::vector<std::string>{"exited with status 3: no such cluster"});
  CHECK(Observed("kill -9 $$", 1).failures == std::vector<std::string>{"was killed by signal 9"});
  CHECK_THAT(Observed("/no/such/script", 1).failures.at(0), ContainsSubstring("exited with status 127"));
}
