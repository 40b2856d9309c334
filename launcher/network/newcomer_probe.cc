#include "launcher/network/newcomer_probe.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "base/error.hpp"
#include "launcher/network/ip_network.hpp"

namespace runjob {
namespace {

/// Only the address that the host's ranks have already.
NetworkFacts facts_of(const NewcomerProbe::Member& member) {
  NetworkFacts result;
  for (NetworkInterface interface : member.probed.facts.interfaces) {
    std::erase_if(interface.addresses,
                  [&](const InterfaceAddress& each) { return each.address != member.address.address; });
    interface.carrier = true;  // its cable may have been out when the agent described it
    if (!interface.addresses.empty()) result.interfaces.push_back(std::move(interface));
  }
  return result;
}

}  // namespace

NetworkFacts facts_without_loopback(NetworkFacts facts) {
  NetworkFacts without = facts;
  std::erase_if(without.interfaces, [](const NetworkInterface& each) { return each.loopback; });
  return without.interfaces.empty() ? facts : without;
}

HostAddress address_of_only_host(const std::string& name, const NetworkFacts& facts, const InterfaceFilter& filter) {
  const NetworkFacts outside = facts_without_loopback(facts);
  const std::vector<Candidate> found = candidates(outside, filter);
  return found.empty() ? loopback_address() : choose_addresses({{name, outside, found}}, {}).front();
}

std::string loopback_obstacle(const std::string& name, const HostAddress& address) {
  if (!is_loopback_address(address.address)) return "";
  return fmt::format(
      "the ranks on {} are reached at {} only; start the job with --network-interfaces NAME, a hostfile "
      "or a discovery script, so that other hosts can join it",
      name, address.address);
}

NewcomerProbe::NewcomerProbe(const boost::asio::any_io_executor& executor, Member newcomer, std::vector<Member> members,
                             const InterfaceFilter& filter, Send send, Done done, NetworkProbe::Times times)
    : executor_(executor),
      newcomer_(std::move(newcomer)),
      members_(std::move(members)),
      filter_(filter),
      send_(std::move(send)),
      done_(std::move(done)),
      times_(times) {}

void NewcomerProbe::start(std::int64_t number) {
  if (members_.empty()) return done_({}, address_of_only_host(newcomer_.probed.name, newcomer_.probed.facts, filter_));
  std::vector<ProbedHost> hosts = {newcomer_.probed};
  hosts.front().facts = facts_without_loopback(std::move(hosts.front().facts));
  hosts.front().local = false;
  for (const Member& member : members_) {
    if (member.probed.local && newcomer_.probed.local) return done_({}, member.address);  // the same machine
    if (const std::string why = loopback_obstacle(member.probed.name, member.address); !why.empty())
      return done_(Status(Errc::kUsage, why), {});
    hosts.push_back({member.probed.name, facts_of(member), false});
  }
  const auto send = [this](int index, ToAgent type, std::string payload) {
    const int host = index == 0 ? newcomer_.host : members_[static_cast<std::size_t>(index) - 1].host;
    send_(host, type, std::move(payload));
  };
  probe_.emplace(
      executor_, std::move(hosts), filter_, send,
      [this](const Status& status, const std::vector<HostAddress>& addresses) {
        done_(status, status.ok() ? addresses.front() : HostAddress());
      },
      times_);
  probe_->start(number);
}

void NewcomerProbe::give_up() {
  if (probe_) probe_->give_up();
}

bool NewcomerProbe::asks(int host) const {
  return host == newcomer_.host ||
         std::any_of(members_.begin(), members_.end(), [host](const Member& member) { return member.host == host; });
}

void NewcomerProbe::on_frame(int host, ToLauncher type, std::string_view payload) {
  if (!probe_ || !asks(host)) throw Error(Errc::kProtocol, "it sent an answer to a probe that it was not asked for");
  if (host == newcomer_.host) return probe_->on_frame(0, type, payload);
  const auto found =
      std::find_if(members_.begin(), members_.end(), [host](const Member& member) { return member.host == host; });
  probe_->on_frame(static_cast<int>(found - members_.begin()) + 1, type, payload);
}

}  // namespace runjob
