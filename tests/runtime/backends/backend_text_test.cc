#include "runtime/backends/backend_text.hpp"

#include "tests/catch.hpp"

using namespace runjob::runtime;

TEST_CASE("the text of a backend has the reason for it", "[runtime][unit]") {
  CHECK(backend_text({}, {0}, {}) == "none, because one rank has no other one to exchange data with");
  CHECK(backend_text({.groups = {0, 0, 0}}, {0, 0, 0}, {}) == "shared memory, because all 3 ranks are on one host");
  CHECK(backend_text({.groups = {0, 1}}, {0, 1}, {}) ==
        "TCP between all 2 ranks, because each rank is on a host of its own");
  CHECK(backend_text({.groups = {0, 1}}, {0, 0}, {}) == "TCP between all 2 ranks, because RUNJOB_SHARED_MEMORY is 0");
  CHECK(backend_text({.groups = {0, 0, 1, 1}}, {0, 0, 1, 1}, {}) ==
        "shared memory on each host and TCP between the hosts, because the 4 ranks are on 2 hosts");
}

TEST_CASE("the text of a backend names Gloo when it is asked for", "[runtime][unit]") {
  BackendSettings settings;
  settings.gloo = true;
  CHECK(backend_text({.groups = {0, 1}}, {0, 0}, settings) ==
        "Gloo between all 2 ranks, because RUNJOB_CPU_OPERATIONS is gloo");
}

TEST_CASE("the text of a backend has the reason for a fallback", "[runtime][unit]") {
  const MeshAgreement separate{.groups = {2, 3}, .sharing_objection = "rank 1 is in another container"};
  CHECK(backend_text(separate, {0, 0}, {}) == "TCP between all 2 ranks, because rank 1 is in another container");
  const MeshAgreement partly{.groups = {0, 0, 6, 7}, .sharing_objection = "rank 3 is in another container"};
  CHECK(
      backend_text(partly, {0, 0, 1, 1}, {}) ==
      "shared memory on each host and TCP between the hosts, because the 4 ranks are on 2 hosts; some ranks of a host "
      "use TCP, because rank 3 is in another container");
  const MeshAgreement flat{.groups = {0, 0, 1, 1}, .is_flat = true, .settings_objection = "rank 1 has 'a'"};
  CHECK(backend_text(flat, {0, 0, 1, 1}, {}) ==
        "shared memory on each host and TCP between the hosts, because the 4 ranks are on 2 hosts; allreduce and "
        "allgather without regard to hosts, because rank 1 has 'a'");
  BackendSettings settings;
  settings.hierarchical_allgather = false;
  CHECK(backend_text({.groups = {0, 0, 1, 1}}, {0, 0, 1, 1}, settings) ==
        "shared memory on each host and TCP between the hosts, because the 4 ranks are on 2 hosts; allgather without "
        "regard to hosts, because a setting turns the hierarchy off");
}
