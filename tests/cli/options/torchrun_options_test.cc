#include "cli/options/torchrun_options.hpp"

#include "base/error.hpp"
#include "cli/options/command_line.hpp"
#include "cli/options/option_table.hpp"
#include "tests/catch.hpp"

using namespace runjob;

TEST_CASE("an option of torchrun's is an error that names its counterpart", "[unit]") {
  const std::vector<std::pair<std::string, std::string>> table = {
      {"--nproc_per_node=2",
       "--nproc_per_node is torchrun's; write -np N, the number of ranks in all, or -H a:4,b:4 for the ranks of each "
       "host"},
      {"--nproc-per-node",
       "--nproc-per-node is torchrun's; write -np N, the number of ranks in all, or -H a:4,b:4 for the ranks of each "
       "host"},
      {"--nproc",
       "--nproc is torchrun's --nproc-per-node; write -np N, the number of ranks in all, or -H a:4,b:4 for the ranks "
       "of each host"},
      {"--nnodes",
       "--nnodes is torchrun's; start runjob once, on one host, with -H a:4,b:4: it starts the ranks of all hosts"},
      {"--master_addr",
       "--master_addr is torchrun's; leave it out: runjob sets MASTER_ADDR and MASTER_PORT for the ranks"},
      {"--rdzv-endpoint", "--rdzv-endpoint is torchrun's; leave it out: runjob connects the ranks by itself"},
      {"--numa-binding", "--numa-binding is torchrun's; write --bind-to UNIT, such as numa"},
      {"--max-restarts",
       "--max-restarts is torchrun's; leave it out: runjob ends the job when a rank fails, unless it has --min-np"},
      {"--standalone", "--standalone is torchrun's; leave it out: without -H all ranks run on this host"},
  };
  for (const auto& [word, message] : table) {
    INFO(word);
    CHECK_THROWS_WITH(parse_command_line({word, "2"}), message);
  }
}

TEST_CASE("a misspelt option of torchrun's names its counterpart too", "[unit]") {
  CHECK_THROWS_WITH(
      parse_command_line({"--nproc_per_nodes", "2"}),
      Catch::Matchers::StartsWith("unknown option --nproc_per_nodes; --nproc") && ContainsSubstring("write -np N"));
}

TEST_CASE("torchrun's options hide none of runjob's", "[unit]") {
  for (const std::string& spelling : torchrun_spellings()) CHECK(find_option(spelling.substr(2)) == nullptr);
  for (const char* word : {"-m", "--n", "--", "", "--num-proc", "nnodes"}) {
    INFO(word);
    CHECK(torchrun_hint(word).empty());
  }
}
