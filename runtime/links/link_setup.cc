#include "runtime/links/link_setup.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <linux/tcp.h>
#include <list>
#include <netinet/in.h>
#include <optional>
#include <poll.h>
#include <set>
#include <string>
#include <sys/socket.h>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/error.hpp"
#include "base/log.hpp"
#include "runtime/links/congestion_control.hpp"
#include "runtime/links/numeric_address.hpp"

namespace runjob::runtime {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::seconds kMostSilence{10};  // for which a connection may go without proving the key
constexpr std::chrono::milliseconds kRetryAfter{50};
/// For so long a host may be unreachable after the first try: the network may be interrupted for a moment.
constexpr std::chrono::seconds kMostUnreachable{5};
constexpr std::size_t kMostStrangers = 64;
constexpr int kMostNamed = 10;

/// A connection that ended, or that carried something else than the handshake.
struct Broken {
  bool is_closed = false;  ///< by the other end
};

/// A second connection with a member: the other one counts.
struct Superfluous {};

/// A connection that has not been taken yet.
struct Attempt {
  enum class Wait { kConnected, kHello, kAnswer, kProof, kWelcome };

  UniqueFd socket;
  int peer = -1;  ///< -1: it has come to the listener and has not proven who it is
  Wait wait = Wait::kHello;
  Clock::time_point since = Clock::now();
  std::size_t place = 0;  ///< in the descriptors of the last watch(); 0: it began after that
  bool is_ready = false;  ///< poll() has found something to do
  bool is_over = false;   ///< another connection with this peer has become the link
  LinkHello hello;
  LinkAnswer answer;
  std::array<char, sizeof(LinkAnswer)> bytes{};
  std::size_t have = 0;

  /// Reads on until there is a whole message of this type.
  /// Errors  Broken.
  template <class Message>
  std::optional<Message> read() {
    static_assert(sizeof(Message) <= sizeof bytes);
    const ssize_t count = ::recv(socket.get(), bytes.data() + have, sizeof(Message) - have, MSG_DONTWAIT);
    if (count < 0 && (errno == EAGAIN || errno == EINTR)) return std::nullopt;
    if (count <= 0) throw Broken{.is_closed = true};
    have += static_cast<std::size_t>(count);
    if (have < sizeof(Message)) return std::nullopt;
    Message message;
    std::memcpy(&message, bytes.data(), sizeof message);
    have = 0;
    return message;
  }

  /// A new connection has room for these few bytes. Errors  Broken.
  template <class Message>
  void write(const Message& message) {
    const ssize_t count = ::send(socket.get(), &message, sizeof message, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (count != static_cast<ssize_t>(sizeof message)) throw Broken();
  }
};

/// A host that vanishes sends nothing, not even an end of stream: after a second of silence the kernel probes it every
/// second. A rank that waits for its data gives it up because of unanswered probes (SilenceWatch). A connection that
/// nobody waits for survives 15 s without the network.
void prepare(int socket) {
  const auto set = [socket](int level, int option, int value) {
    static_cast<void>(::setsockopt(socket, level, option, &value, sizeof value));  // all work without it
  };
  set(IPPROTO_TCP, TCP_NODELAY, 1);
  set(SOL_SOCKET, SO_KEEPALIVE, 1);
  set(IPPROTO_TCP, TCP_KEEPIDLE, 1);
  set(IPPROTO_TCP, TCP_KEEPINTVL, 1);
  set(IPPROTO_TCP, TCP_KEEPCNT, 15);
}

}  // namespace

class LinkSetup::Attempts {
 public:
  Attempts(int listener, LinkPlan plan) : listener_(listener), plan_(std::move(plan)) {
    if (plan_.encrypts) exchange_.emplace();
  }

  /// For connect_links(): blocks until there is a link with every peer.
  std::map<int, LinkStream> connect_all() {
    for (const auto& [member, peer] : plan_.peers) {
      if (member < plan_.own) begin(member);
    }
    while (links_.size() < plan_.peers.size()) {
      wait();
      move_on();
    }
    return take_links();
  }

  void connect_to(int member) {
    if (done_.contains(member) || links_.contains(member) || failures_.contains(member) || is_tried(member)) return;
    try {
      begin(member);
    } catch (const Error& error) {
      fail(member, error);
    }
  }

  void watch(std::vector<pollfd>& descriptors) {
    std::size_t index = 0;
    descriptors.push_back({listener_, POLLIN, 0});
    for (Attempt& attempt : attempts_) {
      attempt.place = ++index;
      const short events = attempt.wait == Attempt::Wait::kConnected ? POLLOUT : POLLIN;
      descriptors.push_back({attempt.socket.get(), events, 0});
    }
  }

  /// `descriptors`: those of the last watch(), which poll() has filled in.
  void note_events(std::span<const pollfd> descriptors) {
    for (Attempt& attempt : attempts_) {
      const std::size_t place = std::exchange(attempt.place, 0);
      attempt.is_ready = place != 0 && place < descriptors.size() && descriptors[place].revents != 0;
    }
  }

  void move_on() {
    for (auto attempt = attempts_.begin(); attempt != attempts_.end();) {
      const bool is_over = attempt->is_over || (attempt->is_ready && is_settled(*attempt));
      attempt = is_over ? attempts_.erase(attempt) : std::next(attempt);
    }
    accept();
    begin_again();
  }

  bool is_busy() const { return !attempts_.empty() || has_retries(); }
  bool has_retries() const { return !retries_.empty(); }

  std::map<int, LinkStream> take_links() {
    if (links_.empty()) return {};
    const std::string of_host = congestion_control_of_host();
    for (const auto& [member, socket] : links_) {
      prepare(socket.fd());
      settle_congestion_control(socket.fd(), of_host);
      done_.insert(member);
    }
    return std::exchange(links_, {});
  }

  std::map<int, Status> take_failures() {
    for (const auto& [member, why] : failures_) done_.insert(member);
    return std::exchange(failures_, {});
  }

 private:
  const LinkPeer& peer(int member) const { return plan_.peers.at(member); }

  static std::string place_text(const LinkPeer& peer) {
    return fmt::format("{} at {} port {}", peer.name, peer.address.address, peer.address.port);
  }

  std::string connecting_to(int member) const { return fmt::format("connecting to {}", place_text(peer(member))); }

  Error unreachable(int member, int error) const {
    const bool is_own_network = error == ENETUNREACH || error == EADDRNOTAVAIL;
    return {Errc::kConnect,
            fmt::format("{}: {}{}", connecting_to(member), std::strerror(error),
                        is_own_network ? "; no network interface of this process leads there, as in a container or a "
                                         "network namespace of its own: start it in the network of its host"
                                       : "")};
  }

  /// True for an error that an interruption of the network causes too, and that may be over at the next try.
  bool may_pass(int member, int error) const {
    if (error == ETIMEDOUT) return true;
    const bool is_unreachable = error == EHOSTUNREACH || error == EHOSTDOWN || error == ENETDOWN;
    return is_unreachable && Clock::now() - first_tries_.at(member) < kMostUnreachable;
  }

  void try_later(int member) { retries_.push_back({member, Clock::now() + kRetryAfter}); }

  void begin(int member) {
    first_tries_.try_emplace(member, Clock::now());
    const AddressList list = parse_address(peer(member).address.address, peer(member).address.port);
    Attempt attempt;
    attempt.peer = member;
    attempt.wait = Attempt::Wait::kConnected;
    attempt.socket.reset(::socket(list->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    if (!attempt.socket) throw system_error("making a socket", errno);
    begin_without_bbr(attempt.socket.get());
    if (::connect(attempt.socket.get(), list->ai_addr, list->ai_addrlen) != 0 && errno != EINPROGRESS) {
      if (may_pass(member, errno)) return try_later(member);
      throw unreachable(member, errno);
    }
    attempts_.push_back(std::move(attempt));
  }

  bool is_tried(int member) const {
    const auto is_for = [member](const auto& each) { return each.peer == member; };
    return std::any_of(attempts_.begin(), attempts_.end(), is_for) ||
           std::any_of(retries_.begin(), retries_.end(), is_for);
  }

  /// Of a set-up in which members connect when they need each other, the failure concerns one peer.
  void fail(int member, const Error& error) {
    if (!plan_.is_mutual) throw error;
    failures_.try_emplace(member, error);
  }

  /// Polls until a connection has something, somebody comes, or it is time to look at the clock.
  void wait() {
    std::vector<pollfd> descriptors{{plan_.cancel, POLLIN, 0}};
    watch(descriptors);
    const Clock::time_point now = Clock::now();
    if (now >= plan_.deadline) throw Error(Errc::kTimeout, missing_text());
    std::chrono::milliseconds most = std::chrono::seconds(1);
    if (!retries_.empty()) most = kRetryAfter;
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(plan_.deadline - now);
    ::poll(descriptors.data(), descriptors.size(), static_cast<int>(std::min(most, left).count()));
    note_events(std::span(descriptors).subspan(1));
    if (descriptors.front().revents != 0) throw Error(Errc::kAborted, "connecting was ended");
  }

  std::string missing_text() const {
    std::vector<std::string> missing;
    for (const auto& [member, peer] : plan_.peers) {
      if (links_.contains(member)) continue;
      missing.push_back(member < plan_.own || !peer.address.address.empty() ? place_text(peer) : peer.name);
    }
    return fmt::format(
        "no connection in time with {}; a firewall between the hosts must let TCP connections to any port pass",
        fmt::join(missing, ", "));
  }

  /// True when the attempt has become a link or has failed.
  bool is_settled(Attempt& attempt) {
    try {
      return is_taken(attempt);
    } catch (const Broken& broken) {
      if (attempt.peer < 0) {
        const bool is_given_up = plan_.is_mutual && broken.is_closed;  // a member that has got the link otherwise
        if (!is_given_up) refuse(attempt);
      } else {
        try_later(attempt.peer);
      }
      return true;
    } catch (const Superfluous&) {
      return true;
    } catch (const Error& error) {
      fail(attempt.peer < 0 ? attempt.hello.from : attempt.peer, error);
      return true;
    }
  }

  /// Goes as far as it can without waiting. True once the connection is a link.
  bool is_taken(Attempt& attempt) {
    switch (attempt.wait) {
      case Attempt::Wait::kConnected:
        check_connected(attempt);
        return send_hello(attempt);
      case Attempt::Wait::kHello:
        return take_hello(attempt);
      case Attempt::Wait::kAnswer:
        return take_answer(attempt);
      case Attempt::Wait::kProof:
        return take_proof(attempt);
      case Attempt::Wait::kWelcome:
        return take_welcome(attempt);
    }
    return false;
  }

  /// The peer listens from before the members know its port, so a refusal is final.
  /// Errors  Error(kConnect) with the system's reason.
  void check_connected(const Attempt& attempt) const {
    int error = 0;
    socklen_t length = sizeof error;
    ::getsockopt(attempt.socket.get(), SOL_SOCKET, SO_ERROR, &error, &length);
    if (error == 0) return;
    if (may_pass(attempt.peer, error)) throw Broken();  // once more, until the deadline
    throw unreachable(attempt.peer, error);
  }

  bool send_hello(Attempt& attempt) const {
    attempt.hello = make_hello(plan_.own, attempt.peer, own_exchange());
    attempt.write(attempt.hello);
    attempt.wait = Attempt::Wait::kAnswer;
    return false;
  }

  bool take_hello(Attempt& attempt) const {
    const auto hello = attempt.read<LinkHello>();
    if (!hello) return false;
    const bool may_begin = hello->from > plan_.own || plan_.is_mutual;
    const bool is_ours =
        hello->magic == LinkHello().magic && hello->to == plan_.own && may_begin && plan_.peers.contains(hello->from);
    if (!is_ours) throw Broken();
    check_needed(hello->from);
    attempt.hello = *hello;
    attempt.answer = make_answer(plan_.key, *hello, own_exchange());
    attempt.write(attempt.answer);
    attempt.wait = Attempt::Wait::kProof;
    return false;
  }

  /// Errors  Error(kAuth).
  bool take_answer(Attempt& attempt) const {
    const auto answer = attempt.read<LinkAnswer>();
    if (!answer) return false;
    if (!is_genuine(plan_.key, attempt.hello, *answer)) {
      throw Error(Errc::kAuth,
                  fmt::format("{}: whoever listens there does not hold the job's key", connecting_to(attempt.peer)));
    }
    attempt.answer = *answer;
    attempt.write(make_proof(plan_.key, attempt.hello, *answer));
    check_encryption(attempt, attempt.peer, answer->encrypts);
    attempt.wait = Attempt::Wait::kWelcome;
    return false;
  }

  bool take_proof(Attempt& attempt) {
    const auto proof = attempt.read<LinkProof>();
    if (!proof) return false;
    if (!is_genuine(plan_.key, attempt.hello, attempt.answer, *proof)) throw Broken();
    check_encryption(attempt, attempt.hello.from, attempt.hello.encrypts);
    check_needed(attempt.hello.from);
    check_first(attempt, attempt.hello.from);
    attempt.write(kLinkWelcome);
    take(attempt.hello.from, attempt);
    return true;
  }

  /// Two members may begin a connection with each other at once. Both keep that of the member with the higher number,
  /// which refuses the other's as long as it tries itself.
  /// Errors  Superfluous.
  void check_needed(int member) const {
    const bool has_own =
        member < plan_.own && std::any_of(attempts_.begin(), attempts_.end(),
                                          [&](const Attempt& each) { return each.peer == member && !each.is_over; });
    if (has_own || done_.contains(member)) throw Superfluous();
  }

  /// A member begins a second connection only after the first one has broken before the welcome. While that one lives,
  /// another rank takes this member's name, in the first connection or in this one.
  /// Errors  Error(kAuth).
  void check_first(const Attempt& attempt, int member) const {
    const auto first = links_.find(member);
    if (first == links_.end() || !is_connected(first->second.fd())) return;
    throw Error(Errc::kAuth,
                fmt::format("two connections ({}) come from {}, one from {} and one from {}: a process that holds the "
                            "job's key, on one of these hosts, connects in the name of another rank",
                            plan_.purpose, peer(member).name, peer_address(first->second.fd()),
                            peer_address(attempt.socket.get())));
  }

  static bool is_connected(int socket) {
    char byte;
    const ssize_t count = ::recv(socket, &byte, sizeof byte, MSG_PEEK | MSG_DONTWAIT);
    return count > 0 || (count < 0 && (errno == EAGAIN || errno == EINTR));
  }

  /// Both members have proven the key, so that `encrypts` is what the other one has sent.
  /// Errors  Error(kMismatch).
  void check_encryption(const Attempt& attempt, int member, std::uint32_t encrypts) const {
    if ((encrypts != 0) == plan_.encrypts) return;
    throw Error(Errc::kMismatch,
                fmt::format("{} at {} {} its connections ({}), and this rank {}; give --encrypt-data to runjob, or "
                            "RUNJOB_ENCRYPT_DATA the same value on all ranks",
                            peer(member).name, peer_address(attempt.socket.get()),
                            encrypts != 0 ? "encrypts" : "does not encrypt", plan_.purpose,
                            plan_.encrypts ? "does" : "does not"));
  }

  /// Errors  Error(kAuth).
  void take(int member, Attempt& attempt) {
    for (Attempt& each : attempts_) each.is_over |= &each != &attempt && each.peer == member;
    if (!exchange_) {
      links_[member] = LinkStream(std::move(attempt.socket));
      return;
    }
    const auto keys =
        make_seal_keys(plan_.key, attempt.hello, attempt.answer, /*is_connecting=*/attempt.peer >= 0, *exchange_);
    if (!keys)
      throw Error(Errc::kAuth, fmt::format("{} at {} has sent an invalid public key ({})", peer(member).name,
                                           peer_address(attempt.socket.get()), plan_.purpose));
    links_[member] = LinkStream(std::move(attempt.socket), *keys);
  }

  const KeyExchange* own_exchange() const { return exchange_ ? &*exchange_ : nullptr; }

  bool take_welcome(Attempt& attempt) {
    const auto welcome = attempt.read<char>();
    if (!welcome) return false;
    take(attempt.peer, attempt);
    return true;
  }

  void accept() {
    const std::size_t most = kMostStrangers + plan_.peers.size();
    for (std::size_t accepted = 0; accepted < most; ++accepted) {
      UniqueFd socket(::accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
      if (!socket) break;
      Attempt attempt;
      attempt.socket = std::move(socket);
      attempts_.push_back(std::move(attempt));
    }
    const auto is_stranger = [](const Attempt& attempt) { return attempt.peer < 0; };
    const Clock::time_point too_old = Clock::now() - kMostSilence;
    auto count = static_cast<std::size_t>(std::count_if(attempts_.begin(), attempts_.end(), is_stranger));
    for (auto attempt = attempts_.begin(); attempt != attempts_.end();) {  // the oldest comes first
      const bool drops = is_stranger(*attempt) && (attempt->since < too_old || count > most);
      if (drops) {
        refuse(*attempt);
        --count;
      }
      attempt = drops ? attempts_.erase(attempt) : std::next(attempt);
    }
  }

  void refuse(const Attempt& attempt) {
    if (++refused_ > kMostNamed) return;
    log::warn("a connection from {} to the port for {} was refused: it did not prove the job's key{}",
              peer_address(attempt.socket.get()), plan_.purpose,
              refused_ == kMostNamed ? "; further ones are not shown" : "");
  }

  void begin_again() {
    const Clock::time_point now = Clock::now();
    const auto due =
        std::partition(retries_.begin(), retries_.end(), [&](const Retry& retry) { return retry.at > now; });
    const std::vector<Retry> begun(due, retries_.end());
    retries_.erase(due, retries_.end());
    for (const Retry& retry : begun) {
      if (plan_.is_mutual) {
        connect_to(retry.peer);
      } else {
        begin(retry.peer);
      }
    }
  }

  struct Retry {
    int peer;
    Clock::time_point at;
  };

  const int listener_;
  const LinkPlan plan_;
  std::optional<KeyExchange> exchange_;  ///< if the links are encrypted; wiped when they are set up
  std::list<Attempt> attempts_;
  std::vector<Retry> retries_;
  std::map<int, Clock::time_point> first_tries_;  ///< by member
  std::map<int, LinkStream> links_;
  std::map<int, Status> failures_;  ///< of members to which this one cannot connect
  std::set<int> done_;              ///< members whose link or failure was taken
  int refused_ = 0;
};

std::map<int, LinkStream> connect_links(int listener, const LinkPlan& plan) {
  return LinkSetup::Attempts(listener, plan).connect_all();
}

LinkSetup::LinkSetup(int listener, LinkPlan plan) {
  plan.is_mutual = true;
  attempts_ = std::make_unique<Attempts>(listener, std::move(plan));
}

LinkSetup::~LinkSetup() = default;

void LinkSetup::connect_to(int member) {
  attempts_->connect_to(member);
}

void LinkSetup::watch(std::vector<pollfd>& descriptors) {
  attempts_->watch(descriptors);
}

void LinkSetup::move(std::span<const pollfd> descriptors) {
  attempts_->note_events(descriptors);
  attempts_->move_on();
}

bool LinkSetup::is_busy() const {
  return attempts_->is_busy();
}

std::optional<std::chrono::milliseconds> LinkSetup::most_sleep() const {
  return attempts_->has_retries() ? std::optional(kRetryAfter) : std::nullopt;
}

std::map<int, LinkStream> LinkSetup::take_links() {
  return attempts_->take_links();
}

std::map<int, Status> LinkSetup::take_failures() {
  return attempts_->take_failures();
}

}  // namespace runjob::runtime
