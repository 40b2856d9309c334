/// Plays the other end of a data connection between ranks, which sends any bytes. The input is a list of steps, each one
/// byte and its arguments: a message is asked for, bytes arrive, or the link reads. Whatever arrives, the link must take no
/// more memory than that, and what breaks the rules must be Error(kProtocol).
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <string_view>
#include <sys/socket.h>
#include <vector>

#include "base/error.hpp"
#include "runtime/collectives/tcp/tcp_link.hpp"
#include "tests/fuzz.hpp"

using namespace runjob;
using namespace runjob::runtime;

namespace {

/// A message that was asked for.
struct Asked {
  std::vector<char> memory;
  LinkRequest request;
};

constexpr std::size_t kMost = 2000;

class Steps {
 public:
  explicit Steps(std::string_view steps) : steps_(steps.substr(0, kMost)) {
    int ends[2];
    require(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends) == 0);
    other_.reset(ends[0]);
    link_ = std::make_unique<TcpLink>(LinkStream(UniqueFd(ends[1])));
  }

  void run() {
    try {
      while (!steps_.empty()) step(take() % 6);
      for (int i = 0; i < 100; ++i) link_->read();
    } catch (const Error& error) {
      require(error.code() == Errc::kProtocol || error.code() == Errc::kPeerLost);
    }
  }

 private:
  unsigned take() {
    if (steps_.empty()) return 0;
    const auto byte = static_cast<unsigned char>(steps_.front());
    steps_.remove_prefix(1);
    return byte;
  }

  void step(unsigned kind) {
    switch (kind) {
      case 0:
        return static_cast<void>(link_->read());
      case 1:  // a message is asked for
        return ask(take() % 4, take());
      case 2:  // a header, and the message behind it
        return arrive_message(take() % 4, take());
      case 3:  // a header that claims any length
        return arrive_header(take() % 4, std::uint64_t{1} << (take() % 64));
      case 4:  // any bytes
        return arrive(std::string(steps_.substr(0, take())));
      default:
        return static_cast<void>(link_->move());
    }
  }

  void ask(std::uint64_t tag, std::size_t bytes) {
    Asked& asked = asked_.emplace_back();
    asked.memory.resize(bytes + 1);
    link_->receive(tag, asked.memory.data(), bytes, asked.request);
  }

  void arrive_header(std::uint64_t tag, std::uint64_t bytes) {
    const std::uint64_t header[16] = {tag, bytes};
    arrive({reinterpret_cast<const char*>(header), sizeof header});
  }

  void arrive_message(std::uint64_t tag, std::size_t bytes) {
    arrive_header(tag, bytes);
    arrive(std::string(bytes, static_cast<char>('a' + tag)));
  }

  void arrive(std::string_view bytes) {
    static_cast<void>(::send(other_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL));
  }

  std::string_view steps_;
  UniqueFd other_;
  std::deque<Asked> asked_;  // outlive the link
  std::unique_ptr<TcpLink> link_;
};

}  // namespace

void fuzz(std::string_view input) {
  Steps(input).run();
}
