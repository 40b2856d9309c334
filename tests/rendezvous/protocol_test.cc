#include "rendezvous/protocol.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/error.hpp"
#include "tests/catch.hpp"

using namespace runjob;
using namespace runjob::rendezvous;

namespace {

JoinReply sample() {
  JoinReply reply;
  reply.rank = 2;
  reply.size = 3;
  reply.cross_rank = 1;
  reply.cross_size = 2;
  reply.generation = 7;
  reply.hostname = "s2";
  reply.hosts = {0, 0, 1};
  reply.hostnames = {"s1", "s2"};
  reply.start_timeout_seconds = 0.5;
  return reply;
}

std::string encode(const JoinReply& reply) {
  return join_reply(reply, to_json(static_cast<const Topology&>(reply)), reply.waiting);
}

}  // namespace

TEST_CASE("a join's answer survives the way there and back", "[unit]") {
  CHECK(join_reply_from_json(encode(sample())) == sample());
  CHECK(nlohmann::json::parse(encode(sample()))["topology"]["hostnames"][1] == "s2");
}

TEST_CASE("the messages of an elastic job survive the way there and back", "[unit]") {
  JoinReply reply = sample();
  reply.waiting = true;
  reply.commits = {4, -1, 3};
  CHECK(join_reply_from_json(encode(reply)) == reply);
  reply.commits = {4, -1};
  CHECK_THROWS_AS(join_reply_from_json(encode(reply)), Error);

  JoinRequest request{3, 812, JoinRequest::Ready{17, "rank 1 was killed", 4}};
  CHECK(join_request_from_json(to_json(request)) == request);
  const std::string older = R"({"rank": 3, "pid": 812, "ready": {"after": 2, "commit": 17, "reason": ""}})";
  CHECK(join_request_from_json(older).ready.value().steps == -1);
  request.ready.reset();
  CHECK(join_request_from_json(to_json(request)) == request);
  for (const char* bad : {"", "[]", "{}", R"({"rank": "3"})", R"({"rank": 3, "ready": {}})"}) {
    CAPTURE(bad);
    CHECK_THROWS_WITH(join_request_from_json(bad), ContainsSubstring("a rank's request to join is malformed: "));
  }

  const Notice notice{5, 2, "rank 1 was killed", 3, false, {4, 7}};
  CHECK(notice_from_json(to_json(notice)) == notice);
  CHECK_THROWS_WITH(notice_from_json("{}"), "the launcher's notice to the ranks is malformed: sequence is missing");
  const std::string later =
      R"({"sequence": 1, "ended": %, "reason": "", "outdated": 0, "only_added": true, "leaving": [%]})";
  for (const char* number : {"4294967296", "-9000000000", "0.5", "\"1\""}) {
    INFO(number);
    for (const std::size_t at : {later.find('%'), later.rfind('%')}) {
      std::string text = later;
      text.replace(at, 1, number);
      text.replace(text.find('%'), 1, "1");
      CHECK_THROWS_WITH(notice_from_json(text),
                        ContainsSubstring("the launcher's notice to the ranks is malformed: ") &&
                            ContainsSubstring(at == later.find('%') ? "ended: " : "leaving: "));
    }
  }
}

TEST_CASE("hosts of ranks are written as runs", "[unit]") {
  const auto runs = [](const std::vector<int>& hosts) {
    return nlohmann::json::parse(to_json(Topology{hosts, {}}))["hosts"].dump();
  };
  CHECK(runs({}) == "[]");
  CHECK(runs({0}) == "[[0,0,1]]");
  CHECK(runs({0, 0, 0, 0, 1, 1, 1, 1}) == "[[0,0,4],[1,0,4]]");
  CHECK(runs({0, 1, 2, 0, 1, 2}) == "[[0,1,3],[0,1,3]]");
  std::vector<int> thousands;
  for (int i = 0; i < 10000; ++i) thousands.push_back(i);
  CHECK(runs(thousands) == "[[0,1,10000]]");
  for (const std::vector<int>& hosts :
       {std::vector<int>{0, 0, 0}, {0, 1, 2}, {2, 1, 0}, {0, 0, 1, 2, 2, 0, 1, 0, 2}, {1, 0, 2, 2, 1, 0, 0, 0, 1}}) {
    JoinReply reply = sample();
    reply.size = static_cast<int>(hosts.size());
    reply.hosts = hosts;
    reply.hostnames = {"a", "b", "c"};
    CHECK(join_reply_from_json(encode(reply)) == reply);
  }
}

TEST_CASE("a join's answer that makes no sense is refused", "[unit]") {
  for (const char* text : {"", "{", "[]", "null", "{}", R"({"rank":"x"})", "\xff"}) {
    INFO(text);
    CHECK_THROWS_WITH(join_reply_from_json(text), ContainsSubstring("the answer to a join is malformed: "));
  }
  const auto changed = [](const char* pointer, const nlohmann::json& value) {
    nlohmann::json document = nlohmann::json::parse(encode(sample()));
    document[nlohmann::json::json_pointer(pointer)] = value;
    return document.dump();
  };
  using Json = nlohmann::json;
  CHECK_THROWS_WITH(join_reply_from_json(changed("/rank", 3)),
                    "the answer to a join is malformed: it contradicts itself: rank 3 of 3");
  CHECK_THROWS_WITH(join_reply_from_json(changed("/size", 4)),
                    "the answer to a join is malformed: it contradicts itself: 3 of 4 ranks are on 2 hosts");
  CHECK_THROWS_WITH(join_reply_from_json(changed("/topology/hosts", Json::array({{0, 0, 2000000000}}))),
                    "the answer to a join is malformed: topology: hosts: it has 2000000000 ranks from host 0 on");
  CHECK_THROWS_AS(join_reply_from_json(changed("/rank", -1)), Error);
  CHECK_THROWS_AS(join_reply_from_json(changed("/size", 2000000000)), Error);
  for (const Json& runs : {Json::array({{0, 1, 3}}), Json::array({{0, -1, 3}}), Json::array({{0, 0, 2}}),
                           Json::array({{0, 0, 3}, {0, 0, 1}}), Json::array({{0, 0, 3}, {0, 0, 0}}),
                           Json::array({{-1, 0, 3}}), Json::array({{0, 0}}), Json::array({0, 0, 1}), Json("x"),
                           Json::array({{0, std::int64_t{1} << 62, 3}}), Json::array({{0, 0.5, "x"}})}) {
    INFO(runs);
    CHECK_THROWS_AS(join_reply_from_json(changed("/topology/hosts", runs)), Error);
  }
  CHECK_THROWS_AS(join_reply_from_json(changed("/local_rank", -1)), Error);
  CHECK_THROWS_AS(join_reply_from_json(changed("/cross_rank", 2)), Error);
}

TEST_CASE("blobs survive the way there and back, whatever is in them", "[unit]") {
  std::string all_bytes;
  for (int i = 0; i < 256; ++i) all_bytes += static_cast<char>(i);
  const std::vector<std::string> blobs = {"", std::string(3, '\0'), all_bytes, std::string(70000, 'x')};
  CHECK(decode_blobs(encode_blobs(blobs)) == blobs);
  CHECK(decode_blobs(encode_blobs({})).empty());
}

TEST_CASE("the encoding of blobs is CBOR as RFC 8949 has it", "[unit]") {
  CHECK(encode_blobs({"ab", ""}) == std::string("\x82\x42"
                                                "ab\x40"));
}

TEST_CASE("bytes that are not an array of blobs are refused", "[unit]") {
  const std::vector<std::string> bad = {"",
                                        "x",
                                        "\x82\x41"
                                        "a",  // an element is missing
                                        "\x81\x61"
                                        "a",  // a text string
                                        "\x81\x81\x41"
                                        "a",  // nested
                                        "\x41"
                                        "a",     // no array
                                        "\xa0",  // a map
                                        "\x81\x5b\xff\xff\xff\xff\xff\xff\xff\xff",
                                        "\x9b\xff\xff\xff\xff\xff\xff\xff\xff",
                                        std::string("\x81\x41"
                                                    "ab"),              // a byte too many
                                        std::string(1 << 20, '\x81'),   // deep nesting
                                        std::string(1 << 20, '\x5f')};  // of the pieces of a byte string
  for (const std::string& body : bad) {
    INFO(body.substr(0, 10));
    CHECK_THROWS_WITH(decode_blobs(body), "the answer to a gather is not a CBOR array of byte strings");
  }
}

TEST_CASE("what a failing rank says survives, and anything else is refused", "[unit]") {
  const Failing failing = failing_from_json(to_json(Failing{false, "rank 1 is gone"}));
  CHECK_FALSE(failing.own);
  CHECK(failing.reason == "rank 1 is gone");
  CHECK(failing.late == -1);
  CHECK(failing.lost == -1);
  CHECK(failing_from_json(to_json(Failing{false, "rank 4: Connection timed out", -1, 4})).lost == 4);
  CHECK(failing_from_json(to_json(Failing{false, "allreduce 'x' has waited 3 s", 2})).late == 2);
  CHECK(failing_from_json(R"({"own": true, "reason": ""})").late == -1);
  for (const char* number : {"1099511627776", "18446744073709551615", "-9000000000", "1e300", "\"1\"", "null"}) {
    INFO(number);
    for (const char* field : {"late", "lost"})
      CHECK_THROWS_WITH(failing_from_json(fmt::format(R"({{"own": true, "reason": "", "{}": {}}})", field, number)),
                        ContainsSubstring(fmt::format("a rank's report of its failure is malformed: {}: ", field)));
  }
  for (const char* bad : {"", "[]", "{}", R"({"own": 1, "reason": ""})", R"({"own": true})",
                          R"({"own": true, "reason": 2})", R"({"own": true, "reason": "", "mutual": 1})"}) {
    INFO(bad);
    CHECK_THROWS_WITH(failing_from_json(bad), ContainsSubstring("a rank's report of its failure is malformed: "));
  }
}

TEST_CASE("an error's text survives, and bytes that are not UTF-8 do not break it", "[unit]") {
  const Response response = error_response(404, "no key 'x'");
  CHECK(response.status == 404);
  CHECK(response.content_type == "application/json");
  CHECK(response.body.str() == R"({"error":"no key 'x'"})");
  CHECK(error_text(response.body) == "no key 'x'");
  CHECK(error_text(error_response(400,
                                  "a\xff"
                                  "b")
                       .body) ==
        "a\xef\xbf\xbd"
        "b");
  CHECK(error_text("<html>") == "<html>");
  CHECK(error_text(R"({"error":1})") == R"({"error":1})");
}

TEST_CASE("copies of a body share its bytes", "[unit]") {
  const Body body = std::string(1000, 'x');
  const Body copy = body;
  CHECK(&copy.str() == &body.str());
  CHECK(copy == body);
  CHECK(Body().empty());
  CHECK(Body() == Body(""));
}
