#include "runtime/job/failure_report.hpp"

#include <vector>

#include "tests/catch.hpp"
#include "tests/rendezvous/local_rendezvous.hpp"

using namespace runjob;
using namespace runjob::runtime;

TEST_CASE("a failure is told once, another rank's loss and an own one apart", "[net]") {
  rendezvous::LocalRendezvous rendezvous({"a", "a"});
  std::vector<std::string> heard;
  rendezvous.on_service([&](rendezvous::Service& service) {
    service.on_failing([&](int rank, const rendezvous::Failing& failing) {
      heard.push_back(std::to_string(rank) + (failing.own ? " own " : " other ") + failing.reason);
    });
  });
  FailureReport report(rendezvous.address(), 1);
  report.lost_a_rank("rank 0 is gone");
  report.lost_a_rank("rank 0 is gone");
  report.failing("ValueError: x");
  report.failing("ValueError: y");
  const auto all = rendezvous.on_service([&](rendezvous::Service&) { return heard; });
  CHECK(all == std::vector<std::string>{"1 other rank 0 is gone", "1 own ValueError: x"});
}

TEST_CASE("the rank that is late is reported as such", "[net]") {
  rendezvous::LocalRendezvous rendezvous({"a", "a"});
  std::vector<std::string> heard;
  rendezvous.on_service([&](rendezvous::Service& service) {
    service.on_failing([&](int rank, const rendezvous::Failing& failing) {
      heard.push_back(std::to_string(rank) + " " + failing.reason + " " + std::to_string(failing.late));
    });
  });
  FailureReport(rendezvous.address(), 0).late(1, "allreduce 'x' has waited 3 s");
  const auto all = rendezvous.on_service([&](rendezvous::Service&) { return heard; });
  CHECK(all == std::vector<std::string>{"0 allreduce 'x' has waited 3 s 1"});
}

TEST_CASE("a launcher that is not there hears nothing, and that is no error", "[net]") {
  FailureReport report("unix:/nonexistent/rendezvous.sock", 0);
  CHECK_NOTHROW(report.failing("ValueError: x"));
}
