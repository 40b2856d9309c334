#include "runtime/mpi_start/key_store.hpp"

#include "base/error.hpp"
#include "tests/catch.hpp"
#include "tests/thrown.hpp"

using namespace runjob;
using namespace runjob::runtime;

TEST_CASE("a launcher without a key store is an error that says what to do", "[mpi_start][unit]") {
  ForeignLauncher launcher;
  launcher.store = ForeignLauncher::Store::kUnknown;
  launcher.name = "Open MPI's mpirun";
  const auto [code, text] = thrown([&] { process_key_store(launcher); });
  CHECK(code == Errc::kUnavailable);
  CHECK(text ==
        "init(): Open MPI's mpirun has started this process as one of several, but with neither PMIx nor PMI's socket "
        "(PMI_FD) to "
        "find the others; start the program with runjob -np N, or in Python install mpi4py");
}
