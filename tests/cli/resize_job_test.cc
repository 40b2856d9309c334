#include "cli/resize_job.hpp"

#include <filesystem>
#include <unistd.h>

#include <fmt/format.h>

#include "base/error.hpp"
#include "launcher/resize/resize_request.hpp"
#include "tests/catch.hpp"
#include "tests/launcher/resize/fake_launcher.hpp"

using namespace runjob;

namespace {

/// Returns the output of `runjob resize` when a launcher of this user answers with `reply`.
std::string printed(const std::string& reply) {
  make_resize_folder(resize_folder());
  const ResizeSocketName name{fmt::format("feed{}", ::getpid()), ::getpid()};
  const std::string path = resize_folder() + "/" + resize_socket_name(name);
  std::filesystem::remove(path);
  FakeLauncher launcher(path, reply + "\n", ::getuid());
  std::string text;
  const int status =
      resize_job({"resize", name.job_id, "-np", "3"}, [&text](const std::string& line) { text += line; });
  std::filesystem::remove(path);
  CHECK(status == 0);
  CHECK(resize_request_from_json(launcher.received()) == ResizeRequest{3, "", ""});
  return text;
}

}  // namespace

TEST_CASE("what a launcher answers to a resize is one line and moves no cursor", "[multiproc]") {
  CHECK(printed(to_json(ResizeReply{true, "the job has 3 ranks"})) == "the job has 3 ranks\n");
  CHECK(printed(to_json(ResizeReply{true, "\x1b]52;c;Y3VybA==\x07\x1b[2J\nrunjob: error: your key has expired"})) ==
        "\\x1b]52;c;Y3VybA==\\x07\\x1b[2J\\nrunjob: error: your key has expired\n");
}
