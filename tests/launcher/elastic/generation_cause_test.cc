#include "launcher/elastic/generation_cause.hpp"

#include "tests/catch.hpp"

using namespace runjob;
using Kind = GenerationCause::Kind;

TEST_CASE("a stronger reason replaces a weaker one, and of equal ones the first stays", "[unit]") {
  GenerationCause cause;
  const auto text_after = [&cause](Kind kind, const char* text) {
    cause.note(kind, text);
    return cause.text();
  };
  CHECK(text_after(Kind::kHostsChanged, "hosts") == "hosts");
  CHECK(text_after(Kind::kLostConnection, "lost") == "lost");
  CHECK(text_after(Kind::kLostConnection, "lost too") == "lost");
  CHECK(text_after(Kind::kEndOfVictim, "victim") == "victim");
  CHECK(text_after(Kind::kAbsence, "absent") == "absent");
  CHECK(text_after(Kind::kError, "error") == "error");
  CHECK(text_after(Kind::kAbsence, "absent too") == "error");
  CHECK(text_after(Kind::kHostLost, "host") == "host");
  CHECK(text_after(Kind::kEnd, "end") == "host");
  cause.clear();
  CHECK(cause.text().empty());
  CHECK(text_after(Kind::kHostsChanged, "hosts again") == "hosts again");
}

TEST_CASE("lost hosts are all named, and of many the first four", "[unit]") {
  GenerationCause cause;
  cause.note(Kind::kError, "error");
  cause.note(Kind::kHostLost, "s1");
  cause.note(Kind::kEnd, "end");
  cause.note(Kind::kHostLost, "s2");
  CHECK(cause.text() == "s1; s2");
  for (const char* host : {"s3", "s4", "s5"}) cause.note(Kind::kHostLost, host);
  CHECK(cause.text() == "s1; s2; s3; s4; 1 other host was lost");
  cause.note(Kind::kHostLost, "s6");
  CHECK(cause.text() == "s1; s2; s3; s4; 2 other hosts were lost");
  cause.clear();
  cause.note(Kind::kEnd, "end");
  CHECK(cause.is_own_failure());
  cause.note(Kind::kHostLost, "s1");
  CHECK(cause.text() == "end; s1");
  CHECK_FALSE(cause.is_own_failure());
}

TEST_CASE("the reasons are known with and without their consequences", "[unit]") {
  GenerationCause cause;
  cause.note(Kind::kError, "error", "; s0 is excluded");
  cause.note(Kind::kHostLost, "lost s1", "; s1 is excluded");
  cause.note(Kind::kHostLost, "lost s2");
  cause.add("; s3 is excluded");
  CHECK(cause.text() == "lost s1; s1 is excluded; lost s2; s3 is excluded");
  CHECK(cause.reason() == "lost s1; lost s2");
  for (int i = 0; i < 3; ++i) cause.note(Kind::kHostLost, "lost another");
  CHECK(cause.reason() == "lost s1; lost s2; lost another; lost another; 1 other host was lost");
  cause.clear();
  CHECK(cause.reason().empty());
}

TEST_CASE("a lost host, changed hosts and a loss while a generation is formed are no failure of a rank", "[unit]") {
  const auto is_own = [](Kind kind) {
    GenerationCause cause;
    cause.note(kind, "why");
    return cause.is_own_failure();
  };
  CHECK_FALSE(GenerationCause().is_own_failure());
  for (const Kind kind : {Kind::kHostsChanged, Kind::kLostWhileForming, Kind::kHostLost}) CHECK_FALSE(is_own(kind));
  for (const Kind kind : {Kind::kLostConnection, Kind::kEndOfVictim, Kind::kAbsence, Kind::kError, Kind::kEnd})
    CHECK(is_own(kind));
}

TEST_CASE("the first report of a process tells whether it is a victim", "[unit]") {
  GenerationCause cause;
  CHECK(cause.kind_for(0, Kind::kEndOfVictim, Kind::kEnd) == Kind::kEnd);
  cause.report(0, /*own=*/true, "ValueError: no label");
  cause.report(1, /*own=*/false, "rank 0 has left");
  cause.report(1, /*own=*/true, "RuntimeError: what came of it");
  CHECK(cause.kind_for(0, Kind::kEndOfVictim, Kind::kEnd) == Kind::kEnd);
  CHECK(cause.kind_for(1, Kind::kEndOfVictim, Kind::kEnd) == Kind::kEndOfVictim);
  CHECK(cause.own_error(0) == "ValueError: no label");
  CHECK(cause.own_error(1).empty());
  CHECK(cause.own_error(2).empty());
  cause.clear();
  CHECK(cause.own_error(0).empty());
  CHECK(cause.kind_for(1, Kind::kEndOfVictim, Kind::kEnd) == Kind::kEnd);
}
