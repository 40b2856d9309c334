#include "runtime/mpi_start/pmi_store.hpp"

#include "base/error.hpp"
#include "tests/catch.hpp"
#include "tests/runtime/mpi_start/pmi_server.hpp"
#include "tests/thrown.hpp"

using namespace runjob;
using namespace runjob::runtime;
using namespace std::chrono_literals;

namespace {

KeyStore::TimePoint soon() {
  return std::chrono::steady_clock::now() + 30s;
}

}  // namespace

TEST_CASE("what a rank puts is got by another, in pieces where it is long", "[mpi_start][net]") {
  const auto length = GENERATE(0, 1, 254, 255, 256, 5000);
  PmiServer server(2);
  PmiStore first(server.launcher(0)), second(server.launcher(1));
  CHECK(second.rank() == 1);
  CHECK(second.size() == 2);
  std::string value(static_cast<std::size_t>(length), '\0');
  for (std::size_t i = 0; i < value.size(); ++i) value[i] = static_cast<char>(i * 7);
  first.put("runjob.a", value);
  std::thread other([&] { first.fence(soon()); });
  second.fence(soon());
  other.join();
  CHECK(second.get(0, "runjob.a", soon()) == value);
}

TEST_CASE("a rank that does not come is a timeout, and the fence stays open", "[mpi_start][net]") {
  PmiServer server(2);
  PmiStore store(server.launcher(0));
  CHECK(thrown([&] { store.fence(std::chrono::steady_clock::now() + 20ms); }).first == Errc::kTimeout);
  CHECK(store.fence_is_open());
  CHECK_FALSE(store.absent("runjob.a", 1ms).has_value());
}

TEST_CASE("a request that is not answered in time is named, and the store is not used again", "[mpi_start][net]") {
  PmiServer server(2, {{"get", "cmd=get_res"}});  // the rest comes too late
  PmiStore store(server.launcher(1));
  const auto late = thrown([&] { store.get(0, "runjob.a", std::chrono::steady_clock::now() + 20ms); });
  CHECK(late.first == Errc::kTimeout);
  CHECK_THAT(late.second, ContainsSubstring("a test has not answered 'cmd=get kvsname=kvs_1_0 key=runjob.a.0.0"));
  CHECK_THAT(late.second, ContainsSubstring("of rank 1 in time"));
  const auto later = thrown([&] { store.put("runjob.b", "1"); });
  CHECK(later.first == Errc::kAborted);
  CHECK_THAT(later.second, ContainsSubstring("a test has not answered an earlier request of rank 1"));
  store.leave();
  CHECK(server.finalized() == 0);
}

TEST_CASE("the launcher is told of the end", "[mpi_start][net]") {
  PmiServer server(1);
  PmiStore store(server.launcher(0));
  store.leave();
  CHECK(server.finalized() == 1);
}

TEST_CASE("a socket that another library has closed is not written to at the end", "[mpi_start][net]") {
  PmiServer server(2);
  ForeignLauncher launcher = server.launcher(0);
  launcher.pmi_descriptor = ::dup(launcher.pmi_descriptor);
  PmiStore store(launcher);
  REQUIRE(::dup2(server.launcher(1).pmi_descriptor, launcher.pmi_descriptor) ==
          launcher.pmi_descriptor);  // its number has a new owner
  store.leave();
  CHECK(server.finalized() == 0);
  ::close(launcher.pmi_descriptor);
}

TEST_CASE("a descriptor that is no socket is an error that says so", "[mpi_start][unit]") {
  ForeignLauncher launcher;
  launcher.name = "MPICH's mpiexec";
  launcher.pmi_descriptor = 0x3ff;
  const auto [code, text] = thrown([&] { PmiStore store(launcher); });
  CHECK(code == Errc::kConnect);
  CHECK_THAT(text, ContainsSubstring(
                       "MPICH's mpiexec has started this process, but its socket (PMI_FD=1023) is not open here"));
}

TEST_CASE("wrong answers are errors that show them", "[mpi_start][net]") {
  const auto error_with = [](const std::string& command, const std::string& answer) {
    PmiServer server(1, {{command, answer}});
    return thrown([&] {
      PmiStore store(server.launcher(0));
      store.put("runjob.a", "1");
      store.fence(soon());
      store.get(0, "runjob.a", soon());
    });
  };
  CHECK_THAT(error_with("init", "cmd=response_to_init rc=-1\n").second,
             ContainsSubstring("a test answers 'cmd=response_to_init rc=-1' to 'cmd=init "));
  CHECK_THAT(error_with("get_maxes", "cmd=maxes vallen_max=2\n").second, ContainsSubstring("vallen_max: '2'"));
  CHECK_THAT(error_with("put", "what?\n").second, ContainsSubstring("no message of PMI: 'what?'"));
  CHECK_THAT(error_with("get", "cmd=get_result rc=0 value=zz\n").second,
             ContainsSubstring("the value of rank 0 under runjob.a is not of runjob"));
  CHECK_THAT(error_with("get", "cmd=get_result rc=0 value=.zz\n").second, ContainsSubstring("'zz' is not hexadecimal"));
  CHECK_THAT(error_with("get", "cmd=get_result rc=-1 msg=key_not_found\n").second, ContainsSubstring("key_not_found"));
  CHECK(error_with("barrier_in", "").first == Errc::kConnect);
  CHECK_THAT(error_with("barrier_in", "").second,
             ContainsSubstring("a test has closed the connection; another rank may have failed"));
  CHECK_THAT(error_with("put", std::string(70000, 'x')).second, ContainsSubstring("a line of over 65536 bytes"));
}
