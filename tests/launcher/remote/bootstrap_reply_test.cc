#include "launcher/remote/bootstrap_reply.hpp"

#include "base/error.hpp"
#include "launcher/channel/frame.hpp"
#include "tests/catch.hpp"

using namespace runjob;
using Kind = BootstrapReply::Kind;

TEST_CASE("a host's reply is found after whatever its shell has printed", "[unit]") {
  CHECK(read_bootstrap_reply("").kind == Kind::kUnfinished);
  CHECK(read_bootstrap_reply("Welcome\nrunjob-agent-missing Linux").kind == Kind::kUnfinished);
  const BootstrapReply missing = read_bootstrap_reply("Welcome\nrunjob-agent-missing Linux x86_64 6.1\n");
  CHECK(missing.kind == Kind::kMissing);
  CHECK(missing.text == "Linux x86_64 6.1");
  CHECK(read_bootstrap_reply("not at the beginning of a line: runjob-agent-missing x\n").kind == Kind::kUnfinished);
  CHECK(read_bootstrap_reply("Welcome" + std::string(kMagic)).kind == Kind::kAgent);
  CHECK(read_bootstrap_reply("runjob-cache-cleaned\n").kind == Kind::kCleaned);
}

TEST_CASE("a reason comes before a request, is cut, and has no control characters", "[unit]") {
  const std::string text =
      "runjob-agent-missing Linux x86_64 6.1\nrunjob-agent-failed no\x1b[2Jspace" + std::string(1000, '.') + "\n";
  const BootstrapReply failed = read_bootstrap_reply(text);
  CHECK(failed.kind == Kind::kFailed);
  CHECK(failed.text.starts_with("no [2Jspace..."));
  CHECK(failed.text.size() == 400);
}

TEST_CASE("a system that cannot run the agent is refused", "[unit]") {
  CHECK_NOTHROW(check_system("Linux x86_64 6.1.0-13-amd64", "x86_64"));
  CHECK_NOTHROW(check_system("Linux x86_64 unknown", "x86_64"));
  CHECK_THROWS_WITH(check_system("Linux aarch64 6.1", "x86_64"), ContainsSubstring("is a Linux aarch64 system"));
  CHECK_THROWS_WITH(check_system("Linux x86_64 3.10.0", "x86_64"), ContainsSubstring("Linux 3.10.0 is too old"));
  CHECK_THROWS_AS(check_system("", "x86_64"), Error);
}
