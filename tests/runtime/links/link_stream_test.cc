#include "runtime/links/link_stream.hpp"

#include <array>
#include <cerrno>
#include <random>
#include <string>
#include <sys/socket.h>

#include "base/error.hpp"
#include "tests/catch.hpp"

using namespace runjob;
using namespace runjob::runtime;

namespace {

SealKey key_of(unsigned char byte) {
  SealKey key;
  key.bytes().fill(byte);
  return key;
}

std::array<UniqueFd, 2> socket_pair() {
  int ends[2];
  REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends) == 0);
  const int bytes = 4096;
  for (const int end : ends) REQUIRE(::setsockopt(end, SOL_SOCKET, SO_SNDBUF, &bytes, sizeof bytes) == 0);
  return {UniqueFd(ends[0]), UniqueFd(ends[1])};
}

/// A link with somebody in the middle, who passes the bytes on.
struct TappedLink {
  TappedLink() {
    auto first = socket_pair(), second = socket_pair();
    near = LinkStream(std::move(first[0]), {key_of(1), key_of(2)});
    far = LinkStream(std::move(second[1]), {key_of(2), key_of(1)});
    tap_near = std::move(first[1]);
    tap_far = std::move(second[0]);
  }

  /// Passes on what `near` has sent. The byte at `altered`, counted over the whole stream, is changed.
  void pass(std::size_t altered = std::string::npos) {
    std::array<char, 3000> bytes;
    const ssize_t count = ::recv(tap_near.get(), bytes.data(), bytes.size(), 0);
    if (count <= 0) return;
    for (std::size_t i = 0; i < static_cast<std::size_t>(count); ++i) {
      if (seen.size() + i == altered) bytes[i] = static_cast<char>(bytes[i] ^ 1);
    }
    seen.append(bytes.data(), static_cast<std::size_t>(count));
    std::size_t sent = 0;
    while (sent < static_cast<std::size_t>(count)) {
      const ssize_t now = ::send(tap_far.get(), bytes.data() + sent, static_cast<std::size_t>(count) - sent, 0);
      if (now > 0) {
        sent += static_cast<std::size_t>(now);
      } else {
        receive();
      }
    }
  }

  void send(std::string_view text) {
    for (std::size_t done = 0; done < text.size();) {
      const std::size_t half = (text.size() - done) / 2;
      const char* const at = text.data() + done;
      const std::array<iovec, 2> parts{iovec{const_cast<char*>(at), half},
                                       iovec{const_cast<char*>(at + half), text.size() - done - half}};
      const ssize_t count = near.send(parts);
      if (count > 0) done += static_cast<std::size_t>(count);
      pass(changed);
      receive();
    }
  }

  /// Receives what there is, in two parts.
  void receive() {
    for (;;) {
      std::array<char, 700> first;
      std::array<char, 5> second;
      const std::array<iovec, 2> parts{iovec{first.data(), first.size()}, iovec{second.data(), second.size()}};
      const ssize_t count = far.receive(parts);
      if (count <= 0) return;
      const auto of_first = std::min(first.size(), static_cast<std::size_t>(count));
      got.append(first.data(), of_first).append(second.data(), static_cast<std::size_t>(count) - of_first);
    }
  }

  LinkStream near, far;
  UniqueFd tap_near, tap_far;
  std::string seen, got;
  std::size_t changed = std::string::npos;
};

std::string text_of(std::size_t size) {
  std::string text;
  while (text.size() < size) text += "the gradient of layer " + std::to_string(text.size()) + "; ";
  return text.substr(0, size);
}

}  // namespace

TEST_CASE("what is sealed arrives as it was sent, and nobody on the way can read it", "[runtime]") {
  TappedLink link;
  const std::string text = text_of(300000);
  link.send(text);
  while (link.got.size() < text.size()) {
    link.pass();
    link.receive();
  }
  CHECK(link.got == text);
  CHECK_FALSE(link.near.has_sealed_unsent());
  CHECK(link.seen.size() > text.size());
  CHECK(link.seen.find("gradient") == std::string::npos);
  CHECK(link.near.is_sealed());
}

TEST_CASE("a byte that is altered on the way is an error, wherever it is, and nothing after it is received",
          "[runtime]") {
  TappedLink link;
  const std::string text = text_of(100000);
  link.changed = GENERATE(0u, 1u, 2u, 700u, 32785u, 33000u, 70000u);
  try {
    link.send(text);
    for (int i = 0; i < 1000; ++i) {
      link.pass(link.changed);
      link.receive();
    }
    // A length that was made longer: the record is not complete before more comes.
    link.send(text);
    FAIL("all was received");
  } catch (const Error& error) {
    CHECK(error.code() == Errc::kAuth);
  }
  CHECK(link.got == text.substr(0, link.got.size()));
  CHECK(link.got.size() <= link.changed);
}

TEST_CASE("streams of random pieces, sealed and plain, with sockets that take little at a time", "[runtime]") {
  const bool is_sealed = GENERATE(true, false);
  auto sockets = socket_pair();
  LinkStream near =
      is_sealed ? LinkStream(std::move(sockets[0]), {key_of(1), key_of(2)}) : LinkStream(std::move(sockets[0]));
  LinkStream far =
      is_sealed ? LinkStream(std::move(sockets[1]), {key_of(2), key_of(1)}) : LinkStream(std::move(sockets[1]));
  std::mt19937 random(5);
  const std::string text = text_of(2000000);
  std::string got;
  std::size_t done = 0;
  while (got.size() < text.size()) {
    const iovec piece{const_cast<char*>(text.data()) + done,
                      std::min<std::size_t>(text.size() - done, 1 + random() % 90000)};
    const ssize_t count = piece.iov_len == 0 ? 0 : near.send({&piece, 1});
    if (count > 0) done += static_cast<std::size_t>(count);
    std::string room(1 + random() % 9000, '\0');
    const iovec into{room.data(), room.size()};
    const ssize_t taken = far.receive({&into, 1});
    if (taken > 0) got += room.substr(0, static_cast<std::size_t>(taken));
  }
  CHECK(got == text);
  char byte;
  const iovec into{&byte, 1};
  CHECK(far.receive({&into, 1}) == -1);
  CHECK(errno == EAGAIN);
  near = LinkStream();
  CHECK(far.receive({&into, 1}) == 0);
}

TEST_CASE("what was sealed for one direction or link is nothing for another", "[runtime]") {
  auto sockets = socket_pair();
  LinkStream near(std::move(sockets[0]), {key_of(1), key_of(2)});
  LinkStream far(std::move(sockets[1]), {key_of(1), key_of(3)});  // it receives what was sealed with key 3
  char byte = 'x';
  const iovec part{&byte, 1};
  REQUIRE(near.send({&part, 1}) == 1);
  CHECK_THROWS_AS(far.receive({&part, 1}), Error);
}
