#include "cli/options/horovodrun_options.hpp"

#include <algorithm>

#include "base/error.hpp"
#include "cli/options/command_line.hpp"
#include "tests/catch.hpp"

using namespace runjob;

namespace {

Warnings warnings_of(const std::vector<std::string>& arguments) {
  Warnings warnings;
  warn_of_horovodrun_options(parse_command_line(arguments).settings, warnings);
  return warnings;
}

}  // namespace

TEST_CASE("an option of horovodrun's that does nothing says why", "[unit]") {
  CHECK(warnings_of({"--mpi", "true"}) ==
        Warnings{"--mpi has no effect: runjob starts the ranks itself; start a program that uses MPI with mpirun"});
  CHECK(warnings_of({"--autotune", "--autotune-gaussian-process-noise", "0.1", "true"}) ==
        Warnings{"--autotune-gaussian-process-noise has no effect: the search compares times and has no Gaussian "
                 "process"});
  CHECK(warnings_of({"--num-nccl-streams", "9", "true"}) ==
        Warnings{"--num-nccl-streams has no effect: collectives on a GPU run on one stream"});
  CHECK(warnings_of({"-np", "2", "true"}).empty());
}

TEST_CASE("an option that asks for what is so anyway is accepted without a warning", "[unit]") {
  for (const std::vector<std::string>& words : std::vector<std::vector<std::string>>{{"--no-autotune"},
                                                                                     {"--no-torus-allreduce"},
                                                                                     {"--no-mpi-threads-disable"},
                                                                                     {"--mpi-threads-disable"},
                                                                                     {"--disable-cache"},
                                                                                     {"--autotune-log-file", "f.csv"},
                                                                                     {"--num-nccl-streams", "1"},
                                                                                     {"--mpi=false"}}) {
    INFO(words.front());
    CHECK(warnings_of(words).empty());
  }
}

TEST_CASE("a value that horovodrun refuses is an error, also of an option that does nothing", "[unit]") {
  const std::vector<std::pair<std::vector<std::string>, std::string>> table = {
      {{"--thread-affinity", "1,2"}, "--thread-affinity: '1,2' is not a whole number from -2147483648 to 2147483647"},
      {{"--num-nccl-streams", "abc"}, "--num-nccl-streams: 'abc' is not a whole number of at least 0"},
      {{"--autotune-gaussian-process-noise", "5"},
       "--autotune-gaussian-process-noise: '5' is not a number from 0 to 1"},
  };
  for (const auto& [words, message] : table) {
    INFO(words.front());
    CHECK_THROWS_WITH(warnings_of(words), message);
  }
  CHECK(warnings_of({"--autotune-gaussian-process-noise", "0.8", "--autotune"}).empty());
  Warnings warnings;
  const Settings of_file = {{"autotune-gaussian-process-noise", {{"5"}, "file c.yaml"}}};
  CHECK_THROWS_WITH(warn_of_horovodrun_options(of_file, warnings),
                    "file c.yaml, autotune-gaussian-process-noise: '5' is not a number from 0 to 1");
}

TEST_CASE("an opposite undoes the option that it is the opposite of", "[unit]") {
  const auto value = [](const std::vector<std::string>& words, const char* option) {
    return parse_command_line(words).settings.at(option).values.back();
  };
  CHECK(value({"--stall-check"}, "no-stall-check") == "false");
  CHECK(value({"--log-without-timestamp"}, "log-hide-timestamp") == "true");
  CHECK(value({"--log-with-timestamp"}, "log-hide-timestamp") == "false");
  CHECK(value({"--no-timeline-mark-cycles"}, "timeline-mark-cycles") == "false");
}

TEST_CASE("horovodrun's own options are known as such", "[unit]") {
  for (const char* name :
       {"num-proc", "hosts", "mpi", "min-np", "host-discovery-script", "slots-per-host", "no-stall-check", "help"})
    CHECK(horovodrun_has(*find_option(name)));
  for (const char* name : {"map-by", "output-ranks", "timeout", "prefix"})
    CHECK_FALSE(horovodrun_has(*find_option(name)));
  CHECK(std::count_if(option_table().begin(), option_table().end(), horovodrun_has) >= 60);
}

TEST_CASE("a beginning means an option that does something, if there is one", "[unit]") {
  CHECK(parse_command_line({"--autotune-w", "2"}).has("autotune-warmup-samples"));
  CHECK(parse_command_line({"--min", "2"}).has("min-np"));
  CHECK_THROWS_WITH(parse_command_line({"--autotune-", "2"}), ContainsSubstring(" or "));
}

TEST_CASE("the command begins after the values of an option that does nothing", "[unit]") {
  CHECK(parse_command_line({"--mpi-args", "--oversubscribe", "--tcp", "train", "--mpi"}).command ==
        std::vector<std::string>{"train", "--mpi"});
}
