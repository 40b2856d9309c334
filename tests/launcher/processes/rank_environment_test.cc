#include "launcher/processes/rank_environment.hpp"

#include "tests/catch.hpp"

using namespace runjob;

TEST_CASE("the launcher's variables go to the ranks, except those of a host or a login", "[unit]") {
  const Environment launcher = {
      {"PATH", "/bin"}, {"MY_SETTING", "a\nb"}, {"HOROVOD_LOG_LEVEL", "debug"}, {"EMPTY", ""}};
  CHECK(forwarded_environment(launcher) == launcher);
  for (const char* name : {"HOME", "PWD", "OLDPWD", "HOSTNAME", "TMPDIR", "XDG_RUNTIME_DIR", "SSH_AUTH_SOCK", "DISPLAY",
                           "BASH_FUNC_module%%", "CUDA_VISIBLE_DEVICES"}) {
    INFO(name);
    CHECK(forwarded_environment({{name, "x"}}).empty());
    CHECK(host_environment({{name, "x"}}) == Environment{{name, "x"}});
  }
}

TEST_CASE("what an outer launcher gave to us is no business of our ranks", "[unit]") {
  for (const char* name : {"RANK",
                           "WORLD_SIZE",
                           "LOCAL_RANK",
                           "LOCAL_WORLD_SIZE",
                           "MASTER_ADDR",
                           "MASTER_PORT",
                           "TORCHELASTIC_RUN_ID",
                           "TORCHELASTIC_USE_AGENT_STORE",
                           "GROUP_RANK",
                           "ROLE_NAME",
                           "NODE_RANK",
                           "OMPI_COMM_WORLD_RANK",
                           "PMI_RANK",
                           "PMIX_RANK",
                           "PMI2_X",
                           "SLURM_PROCID",
                           "SLURM_LOCALID",
                           "HOROVOD_RANK",
                           "HOROVOD_LOCAL_SIZE",
                           "HOROVOD_GLOO_RENDEZVOUS_ADDR",
                           "RUNJOB_RANK",
                           "RUNJOB_RENDEZVOUS",
                           "RUNJOB_JOB_ID",
                           "RUNJOB_STATUS_FILE",
                           "RUNJOB_OUTPUT_FILENAME",
                           "RUNJOB_ADDRESS"}) {
    INFO(name);
    CHECK(forwarded_environment({{name, "x"}}).empty());
    CHECK(host_environment({{name, "x"}}).empty());
  }
  CHECK(forwarded_environment({{"SLURM_JOB_ID", "7"}}).size() == 1);
}

TEST_CASE("a rank learns its place in everybody's words", "[unit]") {
  Allocation allocation;
  allocation.hosts = {{"s1", 1, "", {}, "", {}}, {"s2", 2, "", {}, "", {}}};
  allocation.placements = {{0, 3, 0, 1, 0, 2, 0}, {1, 3, 0, 2, 1, 2, 1}, {2, 3, 1, 2, 0, 1, 1}};
  const Environment variables = rank_variables(allocation, allocation.placements[2], {"job7", 4, 9, "10.0.0.1", 23456});
  const Environment expected = {{"RUNJOB_RANK", "2"},
                                {"RUNJOB_SIZE", "3"},
                                {"RUNJOB_LOCAL_RANK", "1"},
                                {"RUNJOB_LOCAL_SIZE", "2"},
                                {"RUNJOB_CROSS_RANK", "0"},
                                {"RUNJOB_CROSS_SIZE", "1"},
                                {"RUNJOB_HOSTNAME", "s2"},
                                {"RUNJOB_JOB_ID", "job7"},
                                {"RUNJOB_GENERATION", "4"},
                                {"HOROVOD_RANK", "2"},
                                {"HOROVOD_SIZE", "3"},
                                {"HOROVOD_LOCAL_RANK", "1"},
                                {"HOROVOD_LOCAL_SIZE", "2"},
                                {"HOROVOD_CROSS_RANK", "0"},
                                {"HOROVOD_CROSS_SIZE", "1"},
                                {"HOROVOD_HOSTNAME", "s2"},
                                {"RANK", "2"},
                                {"WORLD_SIZE", "3"},
                                {"LOCAL_RANK", "1"},
                                {"LOCAL_WORLD_SIZE", "2"},
                                {"GROUP_RANK", "1"},
                                {"GROUP_WORLD_SIZE", "2"},
                                {"NODE_RANK", "1"},
                                {"ROLE_NAME", "default"},
                                {"ROLE_RANK", "2"},
                                {"ROLE_WORLD_SIZE", "3"},
                                {"TORCHELASTIC_RUN_ID", "job7"},
                                {"TORCHELASTIC_RESTART_COUNT", "4"},
                                {"TORCHELASTIC_MAX_RESTARTS", "9"},
                                {"MASTER_ADDR", "10.0.0.1"},
                                {"MASTER_PORT", "23456"}};
  CHECK(variables == expected);
}

TEST_CASE("a rank's libraries are told its network, each in its own words", "[unit]") {
  const HostAddress ethernet{"10.0.0.5", false, "eth0", {"eth0", "eth1"}};
  CHECK(network_variables(ethernet, {}) ==
        Environment{{"RUNJOB_ADDRESS", "10.0.0.5"},
                    {"GLOO_SOCKET_IFNAME", "eth0"},
                    {"TP_SOCKET_IFNAME", "eth0"},
                    {"NCCL_SOCKET_IFNAME", "=eth0,eth1"},
                    {"RUNJOB_NETWORK_VARIABLES", "GLOO_SOCKET_IFNAME,NCCL_SOCKET_IFNAME,TP_SOCKET_IFNAME"}});
  const HostAddress infiniband{"fd00::5", true, "ib0", {"ib0"}};
  CHECK(network_variables(infiniband, {}).at("NCCL_SOCKET_FAMILY") == "AF_INET6");
  SECTION("but not against the user's will") {
    const Environment set = {
        {"GLOO_SOCKET_IFNAME", "eth7"}, {"NCCL_SOCKET_IFNAME", ""}, {"RUNJOB_ADDRESS", "10.9.9.9"}};
    CHECK(network_variables(ethernet, set) == Environment{{"RUNJOB_ADDRESS", "10.0.0.5"},
                                                          {"TP_SOCKET_IFNAME", "eth0"},
                                                          {"RUNJOB_NETWORK_VARIABLES", "TP_SOCKET_IFNAME"}});
  }
  SECTION("and a job within a rank has its own") {
    Environment rank = network_variables(ethernet, {{"GLOO_SOCKET_IFNAME", "eth7"}});
    rank["GLOO_SOCKET_IFNAME"] = "eth7";
    CHECK(forwarded_environment(rank) == Environment{{"GLOO_SOCKET_IFNAME", "eth7"}});
  }
  SECTION("and a single host needs to be told nothing") {
    CHECK(network_variables({"127.0.0.1", false, "", {}}, {}) == Environment{{"RUNJOB_ADDRESS", "127.0.0.1"}});
  }
}

TEST_CASE("defaults share the cores and leave out a port that was not found", "[unit]") {
  CHECK(rank_defaults(8, 2, 12345) == Environment{{"PYTHONUNBUFFERED", "1"},
                                                  {"PYTHONFAULTHANDLER", "1"},
                                                  {"NCCL_RAS_ENABLE", "0"},
                                                  {"NCCL_RUNTIME_CONNECT", "0"},
                                                  {"OMP_NUM_THREADS", "4"},
                                                  {"MASTER_PORT", "12345"}});
  CHECK(rank_defaults(2, 8, 0).at("OMP_NUM_THREADS") == "1");
  CHECK(rank_defaults(2, 8, 0).count("MASTER_PORT") == 0);
}
