#include "runtime/mpi_start/pmi_message.hpp"

#include "base/error.hpp"
#include "tests/catch.hpp"
#include "tests/thrown.hpp"

using namespace runjob;
using namespace runjob::runtime;

TEST_CASE("a question is one line", "[mpi_start][unit]") {
  CHECK(to_text({"get", {{"kvsname", "kvs_1_0"}, {"key", "a"}}}) == "cmd=get kvsname=kvs_1_0 key=a");
  CHECK(to_text({"barrier_in", {}}) == "cmd=barrier_in");
}

TEST_CASE("the answers that launchers give are understood", "[mpi_start][unit]") {
  // Of MPICH 5.0, MPICH 3.4 and SLURM 22.05.
  const PmiMessage modern = parse_pmi_message("cmd=get_result rc=0 value=(vector,(0,1,2))\n");
  CHECK(modern.command == "get_result");
  CHECK(modern.value("value") == "(vector,(0,1,2))");
  const PmiMessage old = parse_pmi_message("cmd=get_result rc=0 msg=success value=a=b=");
  CHECK(old.value("value") == "a=b=");
  CHECK(parse_pmi_message("cmd=get_result rc=-1 msg=key_not_found value=unknown \n").value("rc") == "-1");
  CHECK(parse_pmi_message("cmd=barrier_out tag=0").value("nothing").empty());
  CHECK(parse_pmi_message("cmd=put_result rc=1 msg=no such key").value("msg") == "no such key");
}

TEST_CASE("what is no message is shown, without its control characters", "[mpi_start][unit]") {
  for (const char* line :
       {"", "\n", "hello", "cmd=", "rc=0 cmd=x", "cmd=x cmd=y", "cmd=x a=1 a=2", "cmd=x =1", "cmd=x word"}) {
    CAPTURE(line);
    CHECK(thrown([&] { parse_pmi_message(line); }).first == Errc::kProtocol);
  }
  CHECK_THAT(thrown([] { parse_pmi_message("\x1b[2J"); }).second,
             ContainsSubstring("sent what is no message of PMI: '\\x1b[2J'"));
}
