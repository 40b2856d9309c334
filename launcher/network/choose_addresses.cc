#include "launcher/network/choose_addresses.hpp"

#include <algorithm>
#include <cstring>
#include <optional>
#include <tuple>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/error.hpp"

namespace runjob {
namespace {

constexpr const char* kRemedy = "open the network between them or choose another with --network-interface";

/// For each host the index of one of its candidates.
using Option = std::vector<int>;

class Chooser {
 public:
  Chooser(const std::vector<HostNetwork>& hosts, const ProbeOutcomes& outcomes) : hosts_(hosts), outcomes_(outcomes) {
    probers_.resize(hosts.size());
    for (int from = 0; from < count(); ++from) {
      for (const int to : probe_targets(from, count())) probers_[static_cast<std::size_t>(to)].push_back(from);
    }
  }

  std::vector<HostAddress> choose() const {
    const std::optional<Option> best = best_option();
    if (!best) throw Error(Errc::kConnect, explain());
    std::vector<HostAddress> result;
    for (int host = 0; host < count(); ++host) {
      const Candidate& chosen = candidate(host, (*best)[static_cast<std::size_t>(host)]);
      result.push_back({chosen.address, chosen.ipv6, chosen.interface, interfaces(host, chosen)});
    }
    return result;
  }

 private:
  int count() const { return static_cast<int>(hosts_.size()); }
  const HostNetwork& at(int host) const { return hosts_[static_cast<std::size_t>(host)]; }
  const Candidate& candidate(int host, int index) const { return at(host).candidates[static_cast<std::size_t>(index)]; }
  int candidates_of(int host) const { return static_cast<int>(at(host).candidates.size()); }

  bool reached(int from, int to, int index) const {
    const auto found = outcomes_.find({from, to, index});
    return found != outcomes_.end() && found->second.kind == ProbeOutcome::Kind::kReached;
  }

  /// True if all hosts that tried have reached it.
  bool usable(int host, int index) const {
    const std::vector<int>& probers = probers_[static_cast<std::size_t>(host)];
    return std::all_of(probers.begin(), probers.end(), [&](int from) { return reached(from, host, index); });
  }

  /// Chooses for each host an address in the network of the first host's address, or else the best one.
  std::optional<Option> option_around(int anchor) const {
    const Candidate& first = candidate(0, anchor);
    const auto is_loopback = [](const Candidate& c) { return c.kind == Candidate::Kind::kLoopback; };
    Option option{anchor};
    for (int host = 1; host < count(); ++host) {
      int best = -1;
      for (int i = candidates_of(host) - 1; i >= 0; --i) {  // the best candidate comes last
        const Candidate& c = candidate(host, i);
        if (c.ipv6 != first.ipv6 || is_loopback(c) != is_loopback(first) || !usable(host, i)) continue;
        const bool is_worse = best >= 0 && c.network != first.network && candidate(host, best).network == first.network;
        if (!is_worse) best = i;
      }
      if (best < 0) return std::nullopt;
      option.push_back(best);
    }
    return option;
  }

  /// A smaller value is better. A host that does not know the speed counts as fast as the others.
  auto rank_of(const Option& option) const {
    auto kind = Candidate::Kind::kLoopback;
    int speed = 0;
    bool is_one_network = true;
    const Candidate& first = candidate(0, option.front());
    for (int host = 0; host < count(); ++host) {
      const Candidate& c = candidate(host, option[static_cast<std::size_t>(host)]);
      kind = std::max(kind, c.kind);
      if (c.speed_mbits > 0) speed = speed == 0 ? c.speed_mbits : std::min(speed, c.speed_mbits);
      is_one_network = is_one_network && c.network == first.network;
    }
    return std::tuple(kind, -speed, !is_one_network, first.ipv6, !first.default_route);
  }

  std::optional<Option> best_option() const {
    std::optional<Option> best;
    for (int anchor = 0; anchor < candidates_of(0); ++anchor) {
      if (!usable(0, anchor)) continue;
      std::optional<Option> option = option_around(anchor);
      if (option && (!best || rank_of(*option) < rank_of(*best))) best = std::move(option);
    }
    return best;
  }

  std::vector<std::string> interfaces(int host, const Candidate& chosen) const {
    std::vector<std::string> result{chosen.interface};
    for (int i = 0; i < candidates_of(host); ++i) {
      const Candidate& c = candidate(host, i);
      const bool is_new = std::find(result.begin(), result.end(), c.interface) == result.end();
      if (c.named && c.ipv6 == chosen.ipv6 && c.kind == chosen.kind && is_new && usable(host, i)) {
        result.push_back(c.interface);
      }
    }
    return result;
  }

  struct Pair {
    int from, to;
  };
  /// The pairs of hosts of which one tried to reach the other and failed.
  std::vector<Pair> unreached() const;
  std::string explain() const;
  std::vector<std::string> tried(int from, int to) const;
  std::string addresses_of_first() const;
  std::string addresses_of_each() const;

  const std::vector<HostNetwork>& hosts_;
  const ProbeOutcomes& outcomes_;
  std::vector<std::vector<int>> probers_;
};

std::string text_of(const ProbeOutcome& outcome) {
  switch (outcome.kind) {
    case ProbeOutcome::Kind::kReached:
      return "reached";
    case ProbeOutcome::Kind::kStranger:
      return "another host's";
    case ProbeOutcome::Kind::kNotListening:
      return fmt::format("not usable there: {}", std::strerror(outcome.error_number));
    case ProbeOutcome::Kind::kFailed:
      return std::strerror(outcome.error_number);
  }
  return {};
}

/// The message leaves loopback out when there are other addresses.
std::vector<std::string> Chooser::tried(int from, int to) const {
  std::vector<std::string> texts;
  for (int i = 0; i < candidates_of(to); ++i) {
    const auto found = outcomes_.find({from, to, i});
    const Candidate& c = candidate(to, i);
    if (found == outcomes_.end() || (c.kind == Candidate::Kind::kLoopback && !c.named)) continue;
    texts.push_back(fmt::format("{} ({})", c.address, text_of(found->second)));
  }
  return texts;
}

std::vector<Chooser::Pair> Chooser::unreached() const {
  std::vector<Pair> pairs;
  for (int to = 0; to < count(); ++to) {
    for (const int from : probers_[static_cast<std::size_t>(to)]) {
      bool any = false;
      for (int i = 0; i < candidates_of(to); ++i) any = any || reached(from, to, i);
      if (!any) pairs.push_back({from, to});
    }
  }
  return pairs;
}

std::string Chooser::explain() const {
  const std::vector<Pair> pairs = unreached();
  if (pairs.empty()) {
    const std::string text = addresses_of_first();
    return text.empty() ? addresses_of_each() : text;
  }
  const auto [from, to] = pairs.front();
  const std::vector<std::string> texts = tried(from, to);
  const std::string how = texts.empty() ? fmt::format("{} has no address besides loopback", at(to).host)
                                        : fmt::format("tried {}", fmt::join(texts, ", "));
  const std::string others = pairs.size() == 1   ? ""
                             : pairs.size() == 2 ? ", and one more such pair"
                                                 : fmt::format(", and {} more such pairs", pairs.size() - 1);
  return fmt::format("{} cannot reach {}: {}{}; {}", at(from).host, at(to).host, how, others, kRemedy);
}

constexpr int kMostNamed = 4;

/// The case in which every pair of hosts has an address that works, but no address works for all; "" if the first host
/// has such an address.
std::string Chooser::addresses_of_first() const {
  std::vector<std::string> texts;
  for (int i = 0; i < candidates_of(0); ++i) {
    if (usable(0, i)) return {};
  }
  for (const int from : probers_.front()) {
    if (static_cast<int>(texts.size()) == kMostNamed) break;
    std::vector<std::string> addresses;
    for (int i = 0; i < candidates_of(0); ++i) {
      if (reached(from, 0, i)) addresses.push_back(candidate(0, i).address);
    }
    texts.push_back(fmt::format("{} reaches {}", at(from).host, fmt::join(addresses, " and ")));
  }
  return fmt::format("{} has no address that all hosts reach: {}; {}", at(0).host, fmt::join(texts, ", "), kRemedy);
}

/// The remaining cases: addresses of both families, or loopback beside others.
std::string Chooser::addresses_of_each() const {
  std::vector<std::string> texts;
  for (int host = 0; host < std::min(count(), kMostNamed); ++host) {
    std::vector<std::string> addresses;
    for (int i = 0; i < candidates_of(host); ++i) {
      if (usable(host, i)) addresses.push_back(candidate(host, i).address);
    }
    texts.push_back(fmt::format("{} is reached at {}", at(host).host, fmt::join(addresses, " and ")));
  }
  return fmt::format("the hosts have no kind of network in common: {}; {}", fmt::join(texts, ", "), kRemedy);
}

}  // namespace

std::vector<int> probe_targets(int from, int hosts) {
  std::vector<int> targets;
  const int next = (from + 1) % hosts;
  if (next != from) targets.push_back(next);
  if (from != 0 && next != 0) targets.push_back(0);
  return targets;
}

std::vector<HostAddress> choose_addresses(const std::vector<HostNetwork>& hosts, const ProbeOutcomes& outcomes) {
  return Chooser(hosts, outcomes).choose();
}

}  // namespace runjob
