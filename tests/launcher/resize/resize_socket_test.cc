#include "launcher/resize/resize_socket.hpp"

#include <filesystem>
#include <fstream>
#include <future>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/error.hpp"
#include "launcher/resize/resize_request.hpp"
#include "tests/catch.hpp"
#include "tests/launcher/host_sources/source_of_hosts.hpp"

using namespace runjob;

TEST_CASE("a launcher answers the requests of its user while its job runs", "[unit]") {
  const std::string folder = "/tmp/runjob_resize_socket_" + std::to_string(::getpid());
  JobOfSource it("s1:2,s2:2");
  ResizeSocket socket(it.context.get_executor(), folder, "00ff", it.changes);
  make_resize_folder(folder);
  std::ofstream(folder + "/old.999999999.sock") << "";  // of a launcher that was killed
  socket.start();
  const std::string path = folder + "/" + resize_socket_name({"00ff", ::getpid()});
  CHECK(std::filesystem::exists(path));
  CHECK_FALSE(std::filesystem::exists(folder + "/old.999999999.sock"));
  struct stat status {};
  ::stat(path.c_str(), &status);
  CHECK((status.st_mode & 0777) == 0600);
  const auto ask = [&](const ResizeRequest& request) {
    auto reply = std::async(std::launch::async, [&] { return ask_launcher(path, request); });
    it.run_until([&] { return reply.wait_for(std::chrono::seconds(0)) == std::future_status::ready; });
    return reply.get();
  };
  CHECK(ask({3, "", ""}) ==
        ResizeReply{true,
                    "the job has 4 ranks and may have 3, and its hosts have 4 slots; runjob resize JOB -np N lets "
                    "it have more"});
  CHECK(ask({0, "", ""}) == ResizeReply{false, "0 is below the 1 of --min-np, with which the job was started"});
  CHECK(ask({std::nullopt, "s3:2", ""}).ok);
  CHECK_FALSE(ask({std::nullopt, "", "s9"}).ok);
  CHECK(ask({std::nullopt, "", "s3"}).ok);
  socket.stop();
  CHECK_FALSE(std::filesystem::exists(path));
  std::filesystem::remove_all(folder);
}

TEST_CASE("another user's process is refused, even if it reaches the socket", "[multiproc]") {
  if (::getuid() != 0) {
    WARN("skipped: it needs root to become another user");
    return;
  }
  const std::string folder = "/tmp/runjob_resize_user_" + std::to_string(::getpid());
  JobOfSource it("s1:2");
  ResizeSocket socket(it.context.get_executor(), folder, "00ff", it.changes);
  socket.start();
  const std::string path = folder + "/" + resize_socket_name({"00ff", ::getpid()});
  ::chmod(folder.c_str(), 0755);
  ::chmod(path.c_str(), 0666);
  const pid_t stranger = ::fork();
  if (stranger == 0) {
    if (::setuid(65534) != 0) ::_exit(3);
    try {
      ask_launcher(path, {1, "", ""});
      ::_exit(1);
    } catch (const Error& error) {
      ::_exit(error.code() == Errc::kConnect ? 0 : 2);
    }
  }
  int status = -1;
  it.run_until([&] { return ::waitpid(stranger, &status, WNOHANG) != 0; });
  CHECK(status == 0);
  CHECK(it.changed == 0);
  socket.stop();
  std::filesystem::remove_all(folder);
}
