#include "runtime/job/mesh_setup.hpp"

#include "base/error.hpp"
#include "runtime/collectives/hierarchical/host_offer.hpp"
#include "tests/catch.hpp"

using namespace runjob::runtime;

namespace {

MeshPlan plan_of(int rank, Members members, std::vector<int> hosts) {
  MeshPlan plan;
  plan.rank = rank;
  plan.members = std::move(members);
  plan.hosts = std::move(hosts);
  plan.timeout = std::chrono::seconds(30);
  return plan;
}

}  // namespace

TEST_CASE("a mesh of one rank needs nobody", "[runtime][unit]") {
  const MeshPlan plan = plan_of(0, Members(3, {5}, {"b"}), {1});
  Prepared prepared = prepare_mesh({}, plan);
  CHECK(prepared.blob.error.empty());
  CHECK_FALSE(prepared.listener);
  const Meeting meeting =
      meet({}, plan, prepared, [](const std::string&, const BootstrapBlob& own) { return std::vector{own}; });
  CHECK(prepared.backend->connect(meeting.addresses).ok());
  const auto control = connect_control(prepared, plan, meeting.root, nullptr, {});
  control->send({.type = LifeReport::Type::kGoodbye});
  CHECK(control->take().at(0).status.message() == "rank 5 on b called shutdown()");
}

TEST_CASE("a rank that cannot take part is named by its rank in the job", "[runtime][unit]") {
  const MeshPlan plan = plan_of(-1, Members(3, {1, 5}, {"a", "b"}), {0, 1});
  Prepared prepared = prepare_mesh({}, plan);
  CHECK_FALSE(prepared.backend);
  BootstrapBlob broken;
  broken.error = "no network";
  CHECK_THROWS_WITH(meet({}, plan, prepared,
                         [&](const std::string&, const BootstrapBlob& own) {
                           return std::vector{own, broken};
                         }),
                    ContainsSubstring("rank 5 on b cannot take part: no network"));
}

namespace {

/// The mesh address of a rank that has shared memory switched off.
std::string address_without_sharing() {
  return encode(HostOffer{"", "", "t", "", {}, "s"});
}

}  // namespace

TEST_CASE("ranks that cannot share memory meet once more", "[runtime][unit]") {
  const MeshPlan plan = plan_of(-1, Members(3, {1, 5}, {"a", "a"}), {0, 0});
  Prepared watcher, member = prepare_mesh({}, plan_of(0, plan.members, plan.hosts));
  std::vector<std::string> stages;
  const Meeting meeting = meet({}, plan, watcher, [&](const std::string& stage, const BootstrapBlob& own) {
    stages.push_back(stage);
    BootstrapBlob other;
    other.mesh = address_without_sharing();
    return stage == "mesh" ? std::vector{member.blob, other} : std::vector{own, other};
  });
  CHECK(stages == std::vector<std::string>{"mesh", "tcp"});
  CHECK(meeting.addresses == std::vector<std::string>{"", address_without_sharing()});
}

TEST_CASE("ranks that all have shared memory switched off meet once", "[runtime][unit]") {
  const MeshPlan plan = plan_of(-1, Members(3, {1, 5}, {"a", "a"}), {0, 0});
  Prepared watcher;
  int meetings = 0;
  meet({}, plan, watcher, [&](const std::string&, const BootstrapBlob&) {
    ++meetings;
    BootstrapBlob each;
    each.mesh = address_without_sharing();
    return std::vector{each, each};
  });
  CHECK(meetings == 1);
}
