#include "launcher/host_sources/script_source.hpp"

#include "base/environment.hpp"
#include "tests/catch.hpp"
#include "tests/launcher/host_sources/source_of_hosts.hpp"

using namespace runjob;
using Names = std::vector<std::string>;

TEST_CASE("a list of the script changes the hosts; a failure, a bad list and no host at all do not", "[multiproc]") {
  const std::string counter = "/tmp/runjob_script_source_" + std::to_string(::getpid());
  const std::string script = "echo x >> " + counter + "; case $(wc -l < " + counter +
                             ") in 1) echo s2;; 2) exit 1;; 3) echo 's3:x';; 4) ;; *) echo s3:2; echo s1;; esac";
  JobOfSource it("s1:1");
  ScriptSource source(it.context.get_executor(), script, current_environment(), 3, it.changes);
  source.start();
  CHECK(it.run_until([&] { return it.changed == 1; }) == Names{"s2"});
  CHECK(it.job.membership.roll().hosts.at(1).slots == 3);
  CHECK(it.run_until([&] { return it.changed == 2; }) == Names{"s1", "s3"});
  source.stop();
  ::unlink(counter.c_str());
}
