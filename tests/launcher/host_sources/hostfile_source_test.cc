#include "launcher/host_sources/hostfile_source.hpp"

#include <filesystem>
#include <fstream>

#include "tests/catch.hpp"
#include "tests/launcher/host_sources/source_of_hosts.hpp"

using namespace runjob;
using Names = std::vector<std::string>;

namespace {

struct Folder {
  Folder() { std::filesystem::create_directory(path); }
  ~Folder() { std::filesystem::remove_all(path); }
  void write(const std::string& name, const std::string& text) const { std::ofstream(path + "/" + name) << text; }

  std::string path = "/tmp/runjob_hostfile_" + std::to_string(::getpid());
};

}  // namespace

TEST_CASE("a hostfile is read again when it was written or put in the old one's place", "[unit]") {
  const Folder folder;
  folder.write("hosts", "s1\n");
  JobOfSource it("s1:1");
  HostfileSource source(it.context.get_executor(), folder.path + "/hosts", it.changes);
  source.start();
  folder.write("hosts", "s1\ns2\n");
  CHECK(it.run_until([&] { return it.changed == 1; }) == Names{"s1", "s2"});
  folder.write("hosts.new", "s2\ns3\n");
  std::filesystem::rename(folder.path + "/hosts.new", folder.path + "/hosts");
  CHECK(it.run_until([&] { return it.changed == 2; }) == Names{"s2", "s3"});
  SECTION("a file that is not valid as a whole changes nothing") {
    folder.write("hosts", "s4\ns5 slot=x\n");
    folder.write("other", "");
    const auto later = std::chrono::steady_clock::now() + std::chrono::seconds(4);
    CHECK(it.run_until([&] { return std::chrono::steady_clock::now() > later; }) == Names{"s2", "s3"});
    folder.write("hosts", "s4\n");
    CHECK(it.run_until([&] { return it.changed == 3; }) == Names{"s4"});
  }
  SECTION("a file that somebody still writes is not read") {
    std::ofstream open(folder.path + "/hosts");
    open << "s7\n" << std::flush;
    const auto later = std::chrono::steady_clock::now() + std::chrono::seconds(4);
    CHECK(it.run_until([&] { return std::chrono::steady_clock::now() > later; }) == Names{"s2", "s3"});
    open << "s8\n";
    open.close();
    CHECK(it.run_until([&] { return it.changed == 3; }) == Names{"s7", "s8"});
  }
  source.stop();
}
