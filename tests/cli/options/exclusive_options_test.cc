#include "cli/options/exclusive_options.hpp"

#include "cli/options/command_line.hpp"
#include "tests/catch.hpp"

using namespace runjob;

TEST_CASE("of options that exclude each other, horovodrun and runjob take one", "[unit]") {
  const std::vector<std::vector<std::string>> table = {
      {"--gloo", "--mpi"},
      {"--jsrun", "--mpi"},
      {"--jsrun", "--gloo"},
      {"--hierarchical-allreduce", "--no-hierarchical-allreduce"},
      {"--no-hierarchical-allgather", "--hierarchical-allgather"},
      {"--torus-allreduce", "--no-torus-allreduce"},
      {"--autotune", "--no-autotune"},
      {"--timeline-mark-cycles", "--no-timeline-mark-cycles"},
      {"--no-stall-check", "--stall-check"},
      {"--mpi-threads-disable", "--no-mpi-threads-disable"},
      {"-prefix-timestamp", "--log-hide-timestamp"},
      {"--prefix-output-with-timestamp", "--log-with-timestamp"},
      {"--log-without-timestamp", "--no-log-hide-timestamp"},
  };
  for (const auto& words : table) {
    for (const bool as_horovodrun : {false, true}) {
      INFO(words[0] << " " << words[1]);
      CHECK_THROWS_WITH(parse_command_line(words, as_horovodrun),
                        words[0] + " and " + words[1] + " exclude each other; give one of them");
      CHECK_NOTHROW(parse_command_line({words[0]}, as_horovodrun));
      CHECK_NOTHROW(parse_command_line({words[1]}, as_horovodrun));
    }
  }
}

TEST_CASE("an option excludes neither itself nor one that is off, nor words of the command", "[unit]") {
  CHECK_NOTHROW(parse_command_line({"--mpi", "--mpi"}));
  CHECK_NOTHROW(parse_command_line({"--gloo=false", "--mpi"}));
  CHECK_NOTHROW(parse_command_line({"--gloo", "train", "--mpi"}));
  CHECK_NOTHROW(parse_command_line({"--gloo", "--autotune", "--log-hide-timestamp"}));
}
