/// Feeds any bytes to what reads from the wire. The first byte chooses: 'd' gives the rest to the decoders of
/// answers; 'k' takes each line as a request's header on a connection that must be signed, and checks that
/// only what was signed gets through:
///
///     N                             asks for the nonce as a client does
///     S/v1/status body              a signed request
///     anything else                 method, target and auth.hpp's headers, separated by '|'
///
/// Anything else takes each line as an event in a service's life, and checks that every request is
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
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "base/error.hpp"
#include "rendezvous/auth.hpp"
#include "rendezvous/server/gatekeeper.hpp"
#include "rendezvous/server/service.hpp"
#include "rendezvous/target.hpp"
#include "tests/fuzz.hpp"

using namespace runjob;
using namespace runjob::rendezvous;
using namespace std::chrono_literals;

namespace {

constexpr int kSize = 3;

template <class Call>
void allow_error(Call call) {
  try {
    call();
  } catch (const Error&) {
  }
}

void fuzz_decoders(const std::string& text) {
  allow_error([&] { require(decode_blobs(encode_blobs(decode_blobs(text))) == decode_blobs(text)); });
  allow_error([&] {
    const JoinReply reply = join_reply_from_json(text);
    require(join_reply_from_json(join_reply(reply, to_json(static_cast<const Topology&>(reply)))) == reply);
  });
  const std::string shown = error_text(error_response(400, text).body);
  require(error_text(error_response(400, shown).body) == shown);
  if (!text.empty() && text.size() <= kMaxNameBytes)
    require(parse_target("/" + percent_encode(text)).path == std::vector<std::string>{text});
}

std::vector<std::string> split(std::string_view line, char separator) {
  std::vector<std::string> fields(1);
  for (const char c : line) {
    if (c == separator) {
      fields.emplace_back();
    } else {
      fields.back() += c;
    }
  }
  return fields;
}

/// One connection of a peer that may or may not hold the key, until it is refused.
class SignedConnection {
 public:
  /// Whether it goes on.
  bool header(std::string_view line) {
    if (line == "N") return greet();
    if (line.starts_with('S') && client_) return member_request(line.substr(1));
    std::vector<std::string> fields = split(line, '|');
    fields.resize(5);
    const Gatekeeper::Head head{{fields[0], fields[1], "", -1}, fields[2], fields[3], fields[4]};
    const Gatekeeper::Verdict verdict = gatekeeper_.admit(head);
    require(verdict != Gatekeeper::Verdict::kPass);
    if (verdict == Gatekeeper::Verdict::kAnswer) require(!std::exchange(greeted_, true));
    return verdict == Gatekeeper::Verdict::kAnswer;
  }

 private:
  bool greet() {
    const Nonce nonce = random_nonce();
    const Gatekeeper::Verdict verdict = gatekeeper_.admit({{"GET", kSessionTarget, "", -1}, to_hex(nonce), "", ""});
    if (std::exchange(greeted_, true)) {
      require(verdict == Gatekeeper::Verdict::kRefuse);
      return false;
    }
    require(verdict == Gatekeeper::Verdict::kAnswer);
    client_.emplace(key_, nonce, from_hex(gatekeeper_.nonce()).value());
    require(gatekeeper_.sign({200, "", {}}) == to_hex(client_->answer({200, "", {}})));
    return true;
  }

  bool member_request(std::string_view line) {
    const std::size_t space = std::min(line.find(' '), line.size());
    const Request request{"PUT", std::string(line.substr(0, space)), "", 1};
    const Body body(std::string(line.substr(space)));
    const Mac mac = client_->next_request(request, body.digest());
    require(gatekeeper_.admit({request, "", to_hex(mac), to_hex(body.digest())}) == Gatekeeper::Verdict::kPass);
    require(gatekeeper_.admit_body(body) && !gatekeeper_.is_stranger());
    require(!gatekeeper_.admit_body(body.str() + "x"));
    require(gatekeeper_.sign({200, "a", body}) == to_hex(client_->answer({200, "a", body})));
    return true;
  }

  const JobKey key_ = JobKey::random();
  Gatekeeper gatekeeper_{false, key_};
  std::optional<ConnectionAuth> client_;
  bool greeted_ = false;
};

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

  static std::string place(int rank) {
    Place place;
    place.rank = rank;
    place.size = kSize;
    return join_reply(place, to_json(Topology{{0, 0, 0}, {"host"}}));
  }

  Service service_{std::vector<Member>(kSize, Member{"host"}), 3s, place};
  Service::TimePoint now_ = Service::TimePoint() + 1h;
  int asked_ = 0;
  int answered_ = 0;
};

}  // namespace

void fuzz(std::string_view text) {
  if (text.starts_with('d')) {
    fuzz_decoders(std::string(text.substr(1)));
    return;
  }
  if (text.starts_with('k')) {
    SignedConnection connection;
    for (const std::string& line : split(text.substr(1), '\n'))
      if (!connection.header(line)) break;
    return;
  }
  Life life;
  for (const std::string& line : split(text, '\n')) life.event(line);
  life.end();
}
