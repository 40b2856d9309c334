#include "launcher/channel/frame.hpp"

#include <cstring>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/error.hpp"
#include "tests/catch.hpp"

using namespace runjob;

namespace {

using Header = FrameHeader<ToLauncher>;
using Parser = FrameParser<ToLauncher>;
using Frames = std::vector<std::pair<Header, std::string>>;

template <FrameType Type>
std::string frame(Type type, int process, const std::string& payload, Stream stream = Stream::kNone) {
  FrameHeader<Type> header;
  header.type = type;
  header.process = process;
  header.stream = stream;
  header.time_us = 1'700'000'000'000'001;
  header.length = static_cast<std::uint32_t>(payload.size());
  std::string bytes;
  append_header(bytes, header);
  return bytes + payload;
}

/// Feeds `bytes` in pieces of `step`.
Frames parse(Parser& parser, const std::string& bytes, std::size_t step) {
  Frames frames;
  for (std::size_t at = 0; at < bytes.size();) {
    const Parser::Space space = parser.space();
    const std::size_t size = std::min({step, space.size, bytes.size() - at});
    std::memcpy(space.data, bytes.data() + at, size);
    parser.consume(size,
                   [&frames](const Header& header, std::string_view payload) { frames.emplace_back(header, payload); });
    at += size;
  }
  return frames;
}

}  // namespace

TEST_CASE("frames come out as they went in, however the bytes are cut", "[unit]") {
  const std::string bytes = std::string(kMagic) + frame(ToLauncher::kOutput, 3, "hello\n", Stream::kStderr) +
                            frame(ToLauncher::kFinished, -1, "") +
                            frame(ToLauncher::kOutput, 0, std::string(300'000, 'x'), Stream::kStdout);
  for (const std::size_t step : {1, 7, 20, 4096, 1 << 20}) {
    INFO("step " << step);
    Parser parser(64);  // so small that it must grow
    const Frames frames = parse(parser, bytes, step);
    REQUIRE(frames.size() == 3);
    CHECK(frames[0].first.type == ToLauncher::kOutput);
    CHECK(frames[0].first.stream == Stream::kStderr);
    CHECK(frames[0].first.process == 3);
    CHECK(frames[0].first.time_us == 1'700'000'000'000'001);
    CHECK(frames[0].second == "hello\n");
    CHECK(frames[1].first.type == ToLauncher::kFinished);
    CHECK(frames[1].first.process == -1);
    CHECK(frames[1].second.empty());
    CHECK(frames[2].second == std::string(300'000, 'x'));
  }
}

TEST_CASE("a header is 20 bytes, little-endian", "[unit]") {
  const std::string bytes = frame(ToLauncher::kHello, 258, "abc");
  CHECK(bytes.size() == kFrameHeaderBytes + 3);
  CHECK(bytes.substr(0, 4) == std::string("\x03\0\0\0", 4));
  CHECK(bytes[4] == 1);
  CHECK(bytes.substr(8, 4) == std::string("\x02\x01\0\0", 4));
}

TEST_CASE("what a login shell prints before the magic is skipped", "[unit]") {
  Parser parser;
  const Frames frames =
      parse(parser, "Last login: today\r\nmotd\n" + std::string(kMagic) + frame(ToLauncher::kHello, -1, "x"), 5);
  REQUIRE(frames.size() == 1);
}

TEST_CASE("a stream without the magic is refused with what it said", "[unit]") {
  Parser parser;
  const std::string noise = "bash: runjob-agent: command not found\n" + std::string(kMaxNoiseBytes + 100, '.');
  CHECK_THROWS_WITH(parse(parser, noise, 4096),
                    ContainsSubstring("received instead: bash: runjob-agent: command not found"));
  Parser short_parser;
  parse(short_parser, "no route\n", 100);
  CHECK(short_parser.noise() == "no route ");
}

TEST_CASE("bytes that are no frames are refused", "[unit]") {
  const auto refused = [](const std::string& bytes) {
    Parser parser;
    try {
      parse(parser, bytes, 1 << 16);
    } catch (const Error& error) {
      CHECK(error.code() == Errc::kProtocol);
      return std::string(error.what());
    }
    return std::string();
  };
  std::string other_version(kMagic);
  other_version[14] = '9';
  CHECK(refused(other_version) == "the other side speaks another version of the frame protocol");
  std::string bad_type = std::string(kMagic) + frame(ToLauncher::kHello, 0, "");
  bad_type[kMagic.size() + 4] = 99;
  CHECK(refused(bad_type) == "frame of unknown type 99");
  CHECK(refused(std::string(kMagic) + frame(ToAgent::kLaunch, 0, "")) ==
        "frame of type 2, which only the launcher sends");
  std::string bad_stream = std::string(kMagic) + frame(ToLauncher::kHello, 0, "");
  bad_stream[kMagic.size() + 5] = 3;
  CHECK(refused(bad_stream) == "frame of unknown stream 3");
  std::string too_long = std::string(kMagic) + frame(ToLauncher::kHello, 0, "");
  std::memset(too_long.data() + kMagic.size(), 0xff, 4);
  CHECK(refused(too_long) == "frame of 4294967295 bytes, more than 17825792");
}

TEST_CASE("each direction takes its own types and refuses those of the other one", "[unit]") {
  const auto takes = [](auto parser, int number) {
    std::string bytes = std::string(kMagic) + frame(ToLauncher::kHello, -1, "");
    bytes[kMagic.size() + 4] = static_cast<char>(number);
    int frames = 0;
    try {
      parser.feed(bytes, [&](const auto& header, std::string_view) {
        CHECK(static_cast<int>(header.type) == number);
        ++frames;
      });
    } catch (const Error& error) {
      CHECK_THAT(error.what(), ContainsSubstring(fmt::format("type {}", number)));
    }
    return frames == 1;
  };
  std::set<int> by_launcher, by_agent;
  for (int number = 0; number < 256; ++number) {
    if (takes(FrameParser<ToAgent>(), number)) by_launcher.insert(number);
    if (takes(FrameParser<ToLauncher>(), number)) by_agent.insert(number);
  }
  CHECK(by_launcher == std::set<int>{2, 6, 7, 10, 11, 14, 16, 17, 18, 20, 22, 23, 25, 29});  // agent-channel.md
  CHECK(by_agent == std::set<int>{1, 3, 4, 5, 8, 9, 12, 13, 15, 16, 19, 21, 24, 26, 27, 28, 30});
  FrameParser<ToAgent> parser;
  CHECK_THROWS_WITH(parser.feed(std::string(kMagic) + frame(ToLauncher::kHello, -1, ""), [](const auto&, auto) {}),
                    "frame of type 1, which only an agent sends");
}
