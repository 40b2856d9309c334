#include "launcher/resize/resize_request.hpp"

#include <filesystem>
#include <sys/stat.h>
#include <unistd.h>

#include <fmt/format.h>

#include "base/error.hpp"
#include "tests/catch.hpp"
#include "tests/launcher/resize/fake_launcher.hpp"
#include "tests/shared_folder.hpp"

using namespace runjob;

TEST_CASE("requests and replies survive the way", "[unit]") {
  for (const ResizeRequest& each :
       {ResizeRequest{3, "", ""}, ResizeRequest{std::nullopt, "s1:2", ""}, ResizeRequest{std::nullopt, "", "s2"}})
    CHECK(resize_request_from_json(to_json(each)) == each);
  const ResizeReply reply{true, "four ranks"};
  CHECK(resize_reply_from_json(to_json(reply)) == reply);
  for (const char* text : {"", "[]", "{\"ranks\": \"x\"}", "{\"ok\": 1}"}) {
    CHECK_THROWS_WITH(resize_reply_from_json(text), ContainsSubstring("resize: the launcher's reply is malformed: "));
  }
  for (const char* text : {"{\"ranks\": \"x\"}", "{\"ranks\": 4294967299}", "{\"ranks\": 18446744073709551615}",
                           "{\"ranks\": 2.5}", "{\"ranks\": -1}", "{}", "{\"ranks\": 3, \"add\": \"s1\"}"}) {
    INFO(text);
    CHECK_THROWS_WITH(resize_request_from_json(text),
                      ContainsSubstring("the request to resize the job is malformed: "));
  }
}

TEST_CASE("a resize between two versions is served, and its errors name both versions", "[unit]") {
  CHECK(resize_request_from_json(R"({"ranks": 3})").ranks == 3);
  CHECK(resize_reply_from_json(R"({"ok": true, "text": "x", "version": "0.0.1", "later": 1})").text == "x");
  CHECK_THROWS_WITH(
      resize_request_from_json(R"({"hosts": "s1", "version": "0.0.1"})"),
      fmt::format("the request to resize the job is malformed: it does not have exactly one of ranks, add and remove; "
                  "its sender is a runjob 0.0.1, and this is runjob {}: `runjob resize` must be of the version that "
                  "has started the job",
                  kVersion));
  CHECK_THROWS_WITH(
      resize_reply_from_json(R"({"done": true})"),
      fmt::format("resize: the launcher's reply is malformed: ok is missing; its sender is a runjob that does not send "
                  "its version, and this is runjob {}: `runjob resize` must be of the version that has started the job",
                  kVersion));
  CHECK_THROWS_WITH(resize_reply_from_json(fmt::format(R"({{"ok": 1, "version": "{}"}})", kVersion)),
                    "resize: the launcher's reply is malformed: ok: type must be boolean, but is number");
}

TEST_CASE("the name of a socket has the job's id and the launcher's process number", "[unit]") {
  CHECK(resize_socket_name({"00ff", 12}) == "00ff.12.sock");
  const auto name = parse_resize_socket_name("00ff.12.sock");
  REQUIRE(name);
  CHECK(name->job_id == "00ff");
  CHECK(name->launcher == 12);
  for (const char* file : {"x", "a.sock", ".1.sock", "a.b.sock", "a.1x.sock", "a.-1.sock"})
    CHECK_FALSE(parse_resize_socket_name(file));
}

TEST_CASE("a folder that others can use is refused, and a socket without a listener is an error", "[unit]") {
  const std::string folder = "/tmp/runjob_resize_" + std::to_string(::getpid());
  make_resize_folder(folder);
  make_resize_folder(folder);
  CHECK_THROWS_AS(ask_launcher(folder + "/a.1.sock", {3, "", ""}), Error);
  ::chmod(folder.c_str(), 0755);
  CHECK_THROWS_WITH(make_resize_folder(folder),
                    fmt::format("{0} is not a folder of this user alone: its mode is 0755; chmod 0700 {0}", folder));
  std::filesystem::remove_all(folder);
  CHECK_NOTHROW(check_resize_folder(folder));
}

TEST_CASE("what another user puts where the socket should be is not believed", "[multiproc]") {
  if (::getuid() != 0) {
    WARN("skipped: another user needs root");
    return;
  }
  const SharedFolder shared;
  shared.other_user("mkdir -m 0700 folder; ln -s folder link");
  const std::string folder = (shared.path / "folder").string(), link = (shared.path / "link").string();
  constexpr const char* kForeign =
      "{0} is not a folder of this user alone: it belongs to user 65534; only that user and root can remove it: rm -r "
      "{0}";
  CHECK_THROWS_WITH(check_resize_folder(folder), fmt::format(fmt::runtime(kForeign), folder));
  CHECK_THROWS_WITH(make_resize_folder(folder), fmt::format(fmt::runtime(kForeign), folder));
  CHECK_THROWS_WITH(check_resize_folder(link), fmt::format(fmt::runtime(kForeign), link));
  const std::string socket = (shared.path / "00ff.1.sock").string();
  FakeLauncher stranger(socket, "{\"ok\": true, \"text\": \"believe me\"}\n", 65534);
  CHECK_THROWS_WITH(
      ask_launcher(socket, {3, "", ""}),
      fmt::format("resize: user 65534 listens at {0}, and not user 0; nothing was sent to it; rm {0}", socket));
  CHECK(stranger.received().empty());
}
