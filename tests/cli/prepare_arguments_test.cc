#include "cli/prepare_arguments.hpp"

#include "base/error.hpp"
#include "tests/catch.hpp"

using namespace runjob;
using Words = std::vector<std::string>;

TEST_CASE("every spelling of an option becomes its long name", "[unit]") {
  const std::vector<std::pair<Words, Words>> table = {
      {{"-np", "2"}, {"--num-proc", "2"}},
      {{"-np=2"}, {"--num-proc", "2"}},
      {{"-n", "2"}, {"--num-proc", "2"}},
      {{"-n2"}, {"--num-proc", "2"}},
      {{"--num-proc", "2"}, {"--num-proc", "2"}},
      {{"--num-proc=2"}, {"--num-proc", "2"}},
      {{"--num", "2"}, {"--num-proc", "2"}},
      {{"--num=2"}, {"--num-proc", "2"}},
      {{"-H", "a:1"}, {"--hosts", "a:1"}},
      {{"-Ha:1"}, {"--hosts", "a:1"}},
      {{"-H=a:1"}, {"--hosts", "a:1"}},
      {{"-hostfile", "f"}, {"--hostfile", "f"}},
      {{"-hostfile=f"}, {"--hostfile", "f"}},
      {{"-x", "A=1=2"}, {"--export", "A=1=2"}},
      {{"-prefix-timestamp"}, {"--prefix-output-with-timestamp"}},
      {{"--prefix"}, {"--prefix-output-with-timestamp"}},
      {{"-cb"}, {"--check-build"}},
      {{"-v"}, {"--version"}},
      {{"-h"}, {"--help"}},
      {{"--verbose=false"}, {"--verbose=false"}},
      {{"--wdir="}, {"--wdir", ""}},
      {{"-np", "-H"}, {"--num-proc", "-H"}},
  };
  for (const auto& [arguments, options] : table) {
    INFO(arguments.front());
    const PreparedArguments prepared = prepare_arguments(arguments);
    CHECK(prepared.options == options);
    CHECK(prepared.command.empty());
  }
}

TEST_CASE("the command begins at the first word that is no option and stays untouched", "[unit]") {
  const PreparedArguments plain = prepare_arguments({"-np", "2", "python", "-np", "4", "--", "--help"});
  CHECK(plain.command == Words{"python", "-np", "4", "--", "--help"});
  CHECK(plain.typed == std::map<std::string, std::string>{{"num-proc", "-np"}});
  CHECK(prepare_arguments({"--", "ps", "--", "-x"}).command == Words{"ps", "--", "-x"});
  CHECK(prepare_arguments({"--", "--odd-name"}).command == Words{"--odd-name"});
  CHECK(prepare_arguments({"-np", "2", "--"}).command.empty());
  CHECK(prepare_arguments({"-", "a"}).command == Words{"-", "a"});
  CHECK(prepare_arguments({"", "a"}).command == Words{"", "a"});
  CHECK(prepare_arguments({}).command.empty());
}

TEST_CASE("an option that is none is an error that helps", "[unit]") {
  const std::vector<std::pair<Words, std::string>> table = {
      {{"--num-prok", "2"}, "unknown option --num-prok; did you mean --num-proc?"},
      {{"--hots=a"}, "unknown option --hots; did you mean --hosts?"},
      {{"-hosts", "a"}, "unknown option -hosts; did you mean --hosts?"},
      {{"-verbose"}, "unknown option -verbose; did you mean --verbose?"},
      {{"-help"}, "unknown option -help; did you mean --help?"},
      {{"--frobnicate-everything"}, "unknown option --frobnicate-everything; runjob --help lists all options"},
      {{"--host", "a"}, "option --host is ambiguous; write --hosts or --hostfile"},
      {{"--ver"}, "option --ver is ambiguous; write --verbose or --version"},
      {{"-np"}, "option -np needs a value: -np N"},
      {{"--hostfile"}, "option --hostfile needs a value: --hostfile FILE"},
  };
  for (const auto& [arguments, message] : table) {
    INFO(arguments.front());
    CHECK_THROWS_WITH(prepare_arguments(arguments), message);
  }
}

TEST_CASE("an option whose value may be left out takes it after '=' only", "[unit]") {
  const PreparedArguments without = prepare_arguments({"-tag-output", "none", "x"});
  CHECK(without.options == std::vector<std::string>{"--tag-output", "rank,stream"});
  CHECK(without.command == std::vector<std::string>{"none", "x"});
  const PreparedArguments with = prepare_arguments({"--tag-output=none", "x"});
  CHECK(with.options == std::vector<std::string>{"--tag-output", "none"});
}

TEST_CASE("mpirun's command lines of the tutorials are understood", "[unit]") {
  const PreparedArguments prepared =
      prepare_arguments({"-np", "4", "-bind-to", "none", "-map-by", "slot", "-x", "PATH", "-mca", "pml", "ob1", "--mca",
                         "btl", "^openib", "python", "train.py"});
  CHECK(prepared.options == std::vector<std::string>{"--num-proc", "4", "--bind-to", "none", "--map-by", "slot",
                                                     "--export", "PATH", "--mca", "pml ob1", "--mca", "btl ^openib"});
  CHECK(prepared.command == std::vector<std::string>{"python", "train.py"});
  CHECK_THROWS_WITH(prepare_arguments({"-mca", "pml"}), "option -mca needs 2 values: -mca NAME VALUE");
  CHECK_THROWS_WITH(prepare_arguments({"-mca"}), "option -mca needs a value: -mca NAME VALUE");
}
