#include "cli/options/prepare_arguments.hpp"

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
      {{"--num-p", "2"}, {"--num-proc", "2"}},
      {{"--num-p=2"}, {"--num-proc", "2"}},
      {{"-H", "a:1"}, {"--hosts", "a:1"}},
      {{"-Ha:1"}, {"--hosts", "a:1"}},
      {{"-H=a:1"}, {"--hosts", "a:1"}},
      {{"-hostfile", "f"}, {"--hostfile", "f"}},
      {{"-hostfile=f"}, {"--hostfile", "f"}},
      {{"-x", "A=1=2"}, {"--export", "A=1=2"}},
      {{"-prefix-timestamp"}, {"--prefix-output-with-timestamp"}},
      {{"--prefix-o"}, {"--prefix-output-with-timestamp"}},
      {{"--prefix", "/opt/mpi"}, {"--prefix", "/opt/mpi"}},
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

TEST_CASE("a second program after ':' is an error, unless the command is literal", "[unit]") {
  CHECK_THROWS_WITH(prepare_arguments({"-np", "1", "a", ":", "-np", "1", "b"}),
                    "': -np' begins a second program, as for mpirun, and a job of runjob runs one; let that program "
                    "decide by RUNJOB_RANK what it does, or write -- before the command if ':' is an argument of it");
  for (const Words& words : {Words{"a", "x", ":", "--np=1", "b"}, Words{"a", ":", "-n2", "b"},
                             Words{"a", ":", "-host", "s1", "b"}, Words{"a", ":", "--num-proc", "1", "b"}})
    CHECK_THROWS_WITH(prepare_arguments(words), ContainsSubstring("begins a second program"));
  CHECK(prepare_arguments({"--", "a", ":", "-np", "1"}).command == Words{"a", ":", "-np", "1"});
  CHECK(prepare_arguments({"expr", "ab", ":", "a.*"}).command == Words{"expr", "ab", ":", "a.*"});
  CHECK(prepare_arguments({"a", ":", "-frobnicate"}).command.size() == 3);
  CHECK(prepare_arguments({"a", ":"}).command.size() == 2);
}

TEST_CASE("an option that is none is an error that helps", "[unit]") {
  const std::vector<std::pair<Words, std::string>> table = {
      {{"--num-prok", "2"}, "unknown option --num-prok; did you mean --num-proc?"},
      {{"--hots=a"}, "unknown option --hots; did you mean --hosts?"},
      {{"-Hostfile", "f"}, "unknown option -Hostfile; did you mean -hostfile?"},
      {{"-np2"}, "unknown option -np2; did you mean -np?"},
      {{"-pn", "2"}, "unknown option -pn; did you mean -n?"},
      {{"-verbose"}, "unknown option -verbose; did you mean --verbose?"},
      {{"-help"}, "unknown option -help; did you mean --help?"},
      {{"--frobnicate-everything"}, "unknown option --frobnicate-everything; runjob --help lists all options"},
      {{"--hos", "a"}, "option --hos is ambiguous; write --hosts or --hostfile or --host-discovery-script"},
      {{"--ver"}, "option --ver is ambiguous; write --verbose or --version"},
      {{"-np"}, "option -np needs a value: -np N"},
      {{"--hostfile"}, "option --hostfile needs a value: --hostfile FILE"},
  };
  for (const auto& [arguments, message] : table) {
    INFO(arguments.front());
    CHECK_THROWS_WITH(prepare_arguments(arguments), message);
  }
}

TEST_CASE("started as horovodrun, a beginning means the option that it means to horovodrun", "[unit]") {
  const std::vector<std::pair<Words, std::string>> table = {
      {{"--output", "x"}, "output-filename"},
      {{"--con", "x"}, "config-file"},
      {{"--timeline-m"}, "timeline-mark-cycles"},
      {{"--pr"}, "prefix-output-with-timestamp"},
      {{"--prefix"}, "prefix-output-with-timestamp"},
      {{"--bind", "x"}, "binding-args"},
      {{"--dis"}, "disable-cache"},
      {{"--network-interface", "x"}, "network-interfaces"},
      {{"--num-p", "2"}, "num-proc"},
      {{"--map-by", "slot"}, "map-by"},
  };
  for (const auto& [arguments, option] : table) {
    INFO(arguments.front());
    CHECK(prepare_arguments(arguments, true).typed.begin()->first == option);
  }
  for (const char* word : {"--output", "--con", "--timeline-m", "--pr"}) {
    INFO(word);
    CHECK_THROWS_WITH(prepare_arguments({word, "x"}), ContainsSubstring("is ambiguous"));
  }
}

TEST_CASE("an option whose value may be left out takes it after '=' only", "[unit]") {
  const PreparedArguments without = prepare_arguments({"-tag-output", "none", "x"});
  CHECK(without.options == std::vector<std::string>{"--tag-output", "rank,stream"});
  CHECK(without.command == std::vector<std::string>{"none", "x"});
  const PreparedArguments with = prepare_arguments({"--tag-output=none", "x"});
  CHECK(with.options == std::vector<std::string>{"--tag-output", "none"});
  CHECK(without.without_value == "-tag-output");
  for (const Words& words : std::vector<Words>{
           {"--tag-output", "--", "time"}, {"--tag-output=none", "time"}, {"--tag-output", "-np", "2", "time"}})
    CHECK(prepare_arguments(words).without_value.empty());
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
