/// Feeds any bytes to what reads from the wire. The first byte chooses: 'd' gives the rest to the decoders of
/// answers; anything else takes each line as an event in a service's life, and checks that every request is
/// answered exactly once and that nothing is held in the end:
///
///     G1 /v1/kv/a/b?wait=2 body     a request (G, P, U, D: GET, POST, PUT, DELETE; any other byte: another
///     method)
///                                   of rank 1 (- for none)
///     +                             a second passes
///     s1 / j1 / x1                  the process of rank 1 starts, joins, exits
///     !                             the job is closed
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

#include "base/error.hpp"
#include "rendezvous/service.hpp"
#include "rendezvous/target.hpp"

using namespace runjob;
using namespace runjob::rendezvous;
using namespace std::chrono_literals;

namespace {

constexpr int kSize = 3;

void require(bool condition) {
  if (!condition) std::abort();
}

template <class Call>
void allow_error(Call call) {
  try {
    call();
  } catch (const Error&) {
  }
}

void fuzz_decoders(const std::string& text) {
  allow_error([&] { require(decode_blobs(encode_blobs(decode_blobs(text))) == decode_blobs(text)); });
  allow_error([&] { static_cast<void>(to_json(join_reply_from_json(text))); });
  const std::string shown = error_text(error_response(400, text).body);
  require(error_text(error_response(400, shown).body) == shown);
  if (!text.empty() && text.size() <= kMaxNameBytes)
    require(parse_target("/" + percent_encode(text)).path == std::vector<std::string>{text});
}

std::string method_of(char letter) {
  switch (letter) {
    case 'G':
      return "GET";
    case 'P':
      return "POST";
    case 'U':
      return "PUT";
    case 'D':
      return "DELETE";
  }
  return std::string(1, letter);
}

int rank_of(std::string_view line) {
  return line.size() < 2 || line[1] == '-' ? -1 : line[1] - '0';
}

class Life {
 public:
  void event(std::string_view line) {
    if (line.empty()) return;
    switch (line[0]) {
      case '+':
        now_ += 1s;
        if (service_.next_deadline() <= now_) service_.expire(now_);
        require(service_.next_deadline() > now_);
        return;
      case '!':
        return service_.close("closed");
      case 's':
        return service_.rank_started(rank_of(line), 12, now_);
      case 'j':
        return service_.rank_joined(rank_of(line), now_);
      case 'x':
        return service_.rank_exited(rank_of(line), std::string(line.substr(1)), now_);
      default:
        return request(line);
    }
  }

  void end() {
    static_cast<void>(service_.overdue(now_));
    service_.close("over");
    require(asked_ == answered_);
    require(service_.next_deadline() == Service::TimePoint::max());
    const auto status = nlohmann::json::parse(service_.status_json(now_));
    require(status["open_gathers"] == 0 && status["waiting_for_keys"] == 0);
    require(status["keys"] != 0 || status["stored_bytes"] == 0);
  }

 private:
  void request(std::string_view line) {
    const std::size_t target_at = std::min<std::size_t>(line.size(), 3);
    const std::size_t space = std::min(line.find(' ', target_at), line.size());
    const std::string target(line.substr(target_at, space - target_at));
    const std::string body(line.substr(std::min(space + 1, line.size())));
    ++asked_;
    const auto once = std::make_shared<bool>(false);
    service_.handle({method_of(line[0]), target, body, rank_of(line)}, now_, [this, once](const Response& response) {
      require(!std::exchange(*once, true));
      require(response.status >= 200 && response.status < 600);
      if (response.status != 200) static_cast<void>(error_text(response.body));
      ++answered_;
    });
  }

  static JoinReply place(int rank) {
    JoinReply reply;
    reply.rank = rank;
    reply.size = kSize;
    return reply;
  }

  Service service_{std::vector<Member>(kSize, Member{"host"}), 3s, place};
  Service::TimePoint now_ = Service::TimePoint() + 1h;
  int asked_ = 0;
  int answered_ = 0;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::string_view text(reinterpret_cast<const char*>(data), size);
  if (text.starts_with('d')) {
    fuzz_decoders(std::string(text.substr(1)));
    return 0;
  }
  Life life;
  for (std::size_t end = 0; end != text.npos; text.remove_prefix(end == text.npos ? 0 : end + 1)) {
    end = text.find('\n');
    life.event(text.substr(0, end));
  }
  life.end();
  return 0;
}
