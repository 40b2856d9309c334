#include "launcher/resize/resize_request.hpp"

#include <filesystem>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.hpp"
#include "tests/catch.hpp"

using namespace runjob;

TEST_CASE("requests and replies survive the way", "[unit]") {
  for (const ResizeRequest& each :
       {ResizeRequest{3, "", ""}, ResizeRequest{std::nullopt, "s1:2", ""}, ResizeRequest{std::nullopt, "", "s2"}})
    CHECK(resize_request_from_json(to_json(each)) == each);
  const ResizeReply reply{true, "four ranks"};
  CHECK(resize_reply_from_json(to_json(reply)) == reply);
  for (const char* text : {"", "[]", "{\"ranks\": \"x\"}", "{\"ok\": 1}"}) {
    CHECK_THROWS_AS(resize_reply_from_json(text), Error);
  }
  CHECK_THROWS_AS(resize_request_from_json("{\"ranks\": \"x\"}"), Error);
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
  CHECK_THROWS_WITH(make_resize_folder(folder), ContainsSubstring("mode 0700"));
  std::filesystem::remove_all(folder);
}
