#include "launcher/network/network_probe.hpp"

#include <algorithm>
#include <cerrno>
#include <sys/random.h>
#include <utility>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/log.hpp"

namespace runjob {
namespace {

constexpr std::int64_t kRoundLimitMs = 1000;

ProbeToken random_token() {
  ProbeToken token{std::string(ProbeToken::kBytes, '\0'), std::string(ProbeToken::kBytes, '\0')};
  for (std::string* half : {&token.question, &token.answer}) {
    if (::getrandom(half->data(), half->size(), 0) != static_cast<ssize_t>(half->size())) {
      throw system_error("cannot get random bytes", errno);
    }
  }
  return token;
}

bool only_has_loopback(const HostNetwork& network) {
  return std::all_of(network.candidates.begin(), network.candidates.end(),
                     [](const Candidate& each) { return each.kind == Candidate::Kind::kLoopback; });
}

}  // namespace

NetworkProbe::NetworkProbe(const boost::asio::any_io_executor& executor, std::vector<ProbedHost> hosts,
                           const InterfaceFilter& filter, Send send, Done done, Times times)
    : timer_(executor), times_(times), filter_(filter), send_(std::move(send)), done_(std::move(done)) {
  for (ProbedHost& host : hosts) {
    std::vector<Candidate> found = candidates(host.facts, filter_);
    networks_.push_back({std::move(host.name), std::move(host.facts), std::move(found)});
    states_.emplace_back();
    all_local_ = all_local_ && host.local;
  }
}

void NetworkProbe::start(std::int64_t number) {
  number_ = number;
  began_ = std::chrono::steady_clock::now();
  try {
    const bool is_one_machine = networks_.size() == 1 || all_local_;
    if (is_one_machine && filter_.included.empty())
      return finish({}, std::vector<HostAddress>(networks_.size(), loopback_address()));
    check_candidates(networks_, filter_);
    if (is_one_machine) return choose_without_test();
  } catch (const Error& error) {
    return finish(Status(error), {});
  }
  watch_patience();
  listen();
}

/// The agents are on one machine, so they have the same candidates.
void NetworkProbe::choose_without_test() {
  std::vector<HostAddress> addresses;
  for (const HostNetwork& host : networks_) addresses.push_back(choose_addresses({host}, {}).front());
  finish({}, std::move(addresses));
}

/// Some attempt may fail because its packets were lost. A host of the network has answered those that were refused.
bool NetworkProbe::may_be_interrupted() const {
  const auto may_be_lost = [](const auto& each) {
    const ProbeOutcome& outcome = each.second;
    return outcome.kind == ProbeOutcome::Kind::kFailed && outcome.error_number != ECONNREFUSED &&
           outcome.error_number != ENETUNREACH;
  };
  return std::any_of(networks_.begin(), networks_.end(), only_has_loopback) ||
         std::any_of(outcomes_.begin(), outcomes_.end(), may_be_lost);
}

void NetworkProbe::repeat_later() {
  step_ = Step::kPausing;
  timer_.expires_after(times_.pause);
  timer_.async_wait([this](boost::system::error_code error) {
    if (error || step_ != Step::kPausing) return;
    outcomes_.clear();
    ask_for_networks();
  });
}

void NetworkProbe::ask_for_networks() {
  watch_patience();
  step_ = Step::kAsking;
  for (std::size_t i = 0; i < networks_.size(); ++i) {
    if (!only_has_loopback(networks_[i])) continue;
    ProbeListen message{random_token(), {}, number_, /*asks_for_networks=*/true};
    states_[i].waited_for = true;
    send_(static_cast<int>(i), ToAgent::kProbeListen, encode(message));
  }
  if (!waits()) on_step_over();
}

/// Its loopback is left out when there is more: that has been tried.
void NetworkProbe::on_networks(int host, NetworkFacts facts) {
  HostNetwork& known = networks_[static_cast<std::size_t>(host)];
  std::vector<Candidate> found = candidates(facts, filter_);
  std::erase_if(found, [](const Candidate& each) { return each.kind == Candidate::Kind::kLoopback; });
  if (found.empty()) return;
  known.facts = std::move(facts);
  known.candidates = std::move(found);
}

void NetworkProbe::listen() {
  step_ = Step::kListening;
  for (std::size_t i = 0; i < networks_.size(); ++i) {
    states_[i].token = random_token();
    ProbeListen message{states_[i].token, {}, number_};
    for (const Candidate& each : networks_[i].candidates) message.addresses.push_back(each.address);
    states_[i].waited_for = true;
    send_(static_cast<int>(i), ToAgent::kProbeListen, encode(message));
  }
}

void NetworkProbe::on_frame(int host, ToLauncher type, std::string_view payload) {
  if (step_ == Step::kDone) return;  // too late
  if (type == ToLauncher::kProbeListening) return on_listening(host, decode<ProbeListening>(payload));
  on_results(host, decode<ProbeResults>(payload));
}

void NetworkProbe::on_listening(int host, ProbeListening listening) {
  if (listening.probe != number_) return;  // of a probe that was given up
  const bool is_of_asking = step_ == Step::kAsking;
  const std::size_t wanted = is_of_asking ? 0 : networks_[static_cast<std::size_t>(host)].candidates.size();
  check_answer(host, is_of_asking || step_ == Step::kListening, listening.ports.size() == wanted);
  if (is_of_asking) on_networks(host, std::move(listening.networks));
  at(host).ports = std::move(listening.ports);
  end_wait(host);
}

void NetworkProbe::on_results(int host, const ProbeResults& results) {
  if (results.probe != number_) return;  // of a probe that was given up
  const std::vector<ProbeId>& asked = at(host).asked;
  check_answer(host, step_ == Step::kNetworks || step_ == Step::kPrivate, results.outcomes.size() == asked.size());
  for (std::size_t i = 0; i < asked.size(); ++i) outcomes_[asked[i]] = results.outcomes[i];
  end_wait(host);
}

void NetworkProbe::check_answer(int host, bool is_of_this_step, bool is_whole) {
  if (!at(host).waited_for || !is_of_this_step)
    throw Error(Errc::kProtocol, fmt::format("{} sent an answer to a probe that it was not asked for", name_of(host)));
  if (!is_whole) throw Error(Errc::kProtocol, fmt::format("{} sent half an answer to a probe", name_of(host)));
}

void NetworkProbe::end_wait(int host) {
  at(host).waited_for = false;
  if (!waits()) on_step_over();
}

void NetworkProbe::on_step_over() {
  switch (step_) {
    case Step::kAsking:
      return listen();
    case Step::kListening:
      step_ = Step::kNetworks;
      return connect();
    case Step::kNetworks:
    case Step::kPrivate:
      return choose();
    case Step::kIdle:
    case Step::kPausing:
    case Step::kDone:
      return;
  }
}

void NetworkProbe::connect() {
  for (int from = 0; from < static_cast<int>(networks_.size()); ++from) {
    const ProbeConnect message = connections_of(from);
    if (message.targets.empty()) continue;
    at(from).waited_for = true;
    send_(from, ToAgent::kProbeConnect, encode(message));
  }
  if (!waits()) on_step_over();
}

ProbeConnect NetworkProbe::connections_of(int from) {
  ProbeConnect message;
  message.limit_ms = kRoundLimitMs;
  message.probe = number_;
  at(from).asked.clear();
  for (const int to : probe_targets(from, static_cast<int>(networks_.size()))) {
    const std::vector<Candidate>& found = networks_[static_cast<std::size_t>(to)].candidates;
    for (std::size_t i = 0; i < found.size(); ++i) {
      if ((found[i].kind == Candidate::Kind::kPrivate) != (step_ == Step::kPrivate)) continue;
      const ProbeId id{from, to, static_cast<int>(i)};
      const ProbePort& port = at(to).ports[i];
      if (port.port == 0) {
        outcomes_[id] = {ProbeOutcome::Kind::kNotListening, port.error_number};
        continue;
      }
      at(from).asked.push_back(id);
      message.targets.push_back({to, found[i].address, port.port, at(to).token});
    }
  }
  return message;
}

void NetworkProbe::choose() {
  try {
    return finish({}, choose_addresses(networks_, outcomes_));
  } catch (const Error& error) {
    if (step_ == Step::kPrivate) {
      const bool in_time = std::chrono::steady_clock::now() - began_ < times_.repetition;
      if (!in_time || !may_be_interrupted()) return finish(Status(error), {});
      log::info("{}; trying again", error.what());
      return repeat_later();
    }
  }
  log::info("no network of the hosts' own leads to all of them; trying those of containers and tunnels");
  step_ = Step::kPrivate;
  connect();
}

void NetworkProbe::watch_patience() {
  timer_.expires_after(times_.patience);
  timer_.async_wait([this](boost::system::error_code error) {
    if (error || !waits()) return;
    const auto silent = std::find_if(states_.begin(), states_.end(), [](const Host& host) { return host.waited_for; });
    const std::string& name = networks_[static_cast<std::size_t>(silent - states_.begin())].host;
    finish(Status(Errc::kTimeout,
                  fmt::format("the agent on {} did not answer for {} s while the hosts' networks were tried", name,
                              std::chrono::duration<double>(times_.patience).count())),
           {});
  });
}

bool NetworkProbe::waits() const {
  return std::any_of(states_.begin(), states_.end(), [](const Host& host) { return host.waited_for; });
}

void NetworkProbe::end_agents() {
  timer_.cancel();
  if (step_ != Step::kIdle) {
    for (int host = 0; host < static_cast<int>(networks_.size()); ++host) send_(host, ToAgent::kProbeEnd, {});
  }
  step_ = Step::kDone;
}

void NetworkProbe::give_up() {
  if (step_ != Step::kDone) end_agents();
}

void NetworkProbe::finish(Status status, std::vector<HostAddress> addresses) {
  end_agents();
  done_(std::move(status), std::move(addresses));
}

}  // namespace runjob
