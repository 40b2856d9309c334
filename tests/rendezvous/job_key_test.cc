#include "rendezvous/job_key.hpp"

#include <cinttypes>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <string>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.hpp"
#include "tests/catch.hpp"
#include "tests/temporary_directory.hpp"

using namespace runjob;
using namespace runjob::rendezvous;

namespace {

std::string write(const std::string& path, const std::string& text, mode_t mode = 0600) {
  std::filesystem::remove(path);
  std::ofstream(path) << text;
  REQUIRE(::chmod(path.c_str(), mode) == 0);
  return path;
}

void check_refused(const std::string& path, const std::string& why) {
  INFO(path);
  try {
    JobKey::read_file(path);
    FAIL_CHECK("nothing was thrown");
  } catch (const Error& error) {
    CHECK(error.code() == Errc::kAuth);
    CHECK(error.what() == "job key file " + path + ": " + why);
  }
}

}  // namespace

TEST_CASE("a key survives its file, which only its user may read", "[unit]") {
  const TemporaryDirectory directory;
  const std::string path = directory.path() + "/key";
  const JobKey key = JobKey::random();
  const mode_t before = ::umask(0);
  key.write_file(path);
  ::umask(before);
  struct stat info {};
  REQUIRE(::stat(path.c_str(), &info) == 0);
  CHECK((info.st_mode & 07777) == 0600);
  CHECK(JobKey::read_file(path).bytes() == key.bytes());
  CHECK(JobKey::from_hex(key.hex()).bytes() == key.bytes());
  CHECK_THROWS_WITH(key.write_file(path), "cannot write the job key file " + path + ": File exists");
  CHECK(JobKey::random().bytes() != key.bytes());
}

TEST_CASE("no core dump has a key", "[unit]") {
  const JobKey key = JobKey::random();
  const JobKey copy = key;
  REQUIRE(copy.bytes() == key.bytes());
  for (const JobKey* each : {&key, &copy}) {
    std::ifstream maps("/proc/self/smaps");
    std::string flags;
    bool is_its_page = false;
    for (std::string line; std::getline(maps, line) && flags.empty();) {
      std::uintptr_t begin = 0, end = 0;
      const auto place = reinterpret_cast<std::uintptr_t>(each->bytes().data());
      if (std::sscanf(line.c_str(), "%" SCNxPTR "-%" SCNxPTR " ", &begin, &end) == 2)
        is_its_page = begin <= place && place < end;
      if (is_its_page && line.starts_with("VmFlags:")) flags = line + ' ';
    }
    CHECK_THAT(flags, ContainsSubstring(" dd "));  // proc(5): not in a core dump
  }
}

TEST_CASE("a key file may be read-only, and reached by a link", "[unit]") {
  const TemporaryDirectory directory;
  const std::string hex = JobKey::random().hex();
  const std::string path = write(directory.path() + "/key", hex, 0400);
  std::filesystem::create_symlink(path, directory.path() + "/link");
  CHECK(JobKey::read_file(directory.path() + "/link").hex() == hex);
}

TEST_CASE("a key file that others may touch is refused", "[unit]") {
  const TemporaryDirectory directory;
  const std::string path = directory.path() + "/key";
  const std::string hex = JobKey::random().hex();
  for (const mode_t mode : {0640, 0604, 0620, 0602, 0700, 0601, 0610, 04600}) {
    const std::string octal = (mode < 01000 ? "0" : "") + (std::ostringstream() << std::oct << mode).str();
    check_refused(write(path, hex, mode), "its mode is " + octal +
                                              ", and others could read the key or change it; make a new key in a file "
                                              "of mode 0600");
  }
  if (::geteuid() != 0) {
    WARN("skipped: giving a file to another user needs root");
    return;
  }
  write(path, hex);
  REQUIRE(::chown(path.c_str(), 65534, 65534) == 0);
  check_refused(path, "it belongs to user 65534, not to user 0; make one of your own");
}

TEST_CASE("what is no key file is refused without a wait", "[unit]") {
  const TemporaryDirectory directory;
  const std::string path = directory.path() + "/key";
  check_refused(path, "No such file or directory; RUNJOB_JOB_KEY_FILE names it");
  REQUIRE(::mkfifo(path.c_str(), 0600) == 0);
  check_refused(path, "it is not a regular file; name the file that the launcher made");
  check_refused(directory.path(), "it is not a regular file; name the file that the launcher made");
  const std::string hex = JobKey::random().hex();
  for (const std::string& bad : {std::string(), hex.substr(1), hex + "0", hex + "\n\n", hex + "\n0", "\n" + hex,
                                 std::string(64, 'x'), std::string(1 << 20, 'a')})
    check_refused(write(path, bad), "expected 64 hexadecimal digits and nothing else");
}

TEST_CASE("a text that is no key is not shown", "[unit]") {
  CHECK_THROWS_WITH(JobKey::from_hex("secret"), "a job's key is 64 hexadecimal digits");
}
