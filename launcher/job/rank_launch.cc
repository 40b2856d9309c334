#include "launcher/job/rank_launch.hpp"

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <sys/random.h>
#include <utility>

#include <boost/asio/post.hpp>
#include <fmt/format.h>

#include "base/error.hpp"
#include "base/log.hpp"
#include "hostfile/merge_hosts.hpp"
#include "launcher/job/channel_local.hpp"
#include "launcher/job/launch_message.hpp"
#include "launcher/job/output_options.hpp"
#include "launcher/supervision/rank_place.hpp"

namespace runjob {
namespace {

std::string random_job_id() {
  std::uint64_t number = 0;
  if (::getrandom(&number, sizeof number, 0) != sizeof number) throw system_error("cannot get random bytes", errno);
  return fmt::format("{:016x}", number);
}

}  // namespace

RankLaunch::RankLaunch(boost::asio::any_io_executor executor, const JobSpec& spec, HostAgents& agents)
    : executor_(std::move(executor)),
      spec_(spec),
      agents_(agents),
      id_(random_job_id()),
      topology_(rendezvous::to_json(topology_of(spec.allocation))) {}

bool RankLaunch::needs_addresses() const {
  return spec_.allocation.hosts.size() > 1 || !spec_.network_interfaces.included.empty() || may_get_hosts();
}

void RankLaunch::find_addresses(std::function<void(const Status& status)> done) {
  if (may_get_hosts() && spec_.allocation.hosts.size() == 1) {
    addresses_[0] = address_of_only_host(agents_.host(0).name, agents_.hello(0).network, spec_.network_interfaces);
    return boost::asio::post(executor_, [done = std::move(done)] { done({}); });
  }
  std::vector<ProbedHost> probed;
  for (std::size_t i = 0; i < spec_.allocation.hosts.size(); ++i) {
    const int host = static_cast<int>(i);
    const bool is_local = std::count(spec_.local_hosts.begin(), spec_.local_hosts.end(), host) != 0;
    probed.push_back(member(host, is_local).probed);
    if (!may_get_hosts()) continue;  // else loopback would not do
    probed.back().facts = facts_without_loopback(std::move(probed.back().facts));
    probed.back().local = false;
  }
  const auto send = [this](int host, ToAgent type, std::string payload) {
    agents_.send(host, type, std::move(payload));
  };
  probe_.emplace(
      executor_, std::move(probed), spec_.network_interfaces, send,
      [this, done = std::move(done)](const Status& status, std::vector<HostAddress> addresses) {
        for (std::size_t i = 0; i < addresses.size(); ++i) addresses_[static_cast<int>(i)] = std::move(addresses[i]);
        done(status);
      },
      NetworkProbe::Times());
  probe_->start();
}

void RankLaunch::on_probe_frame(int host, ToLauncher type, std::string_view payload) {
  if (probed_ >= 0 && newcomer_probes_.back()->asks(host))
    return newcomer_probes_.back()->on_frame(host, type, payload);
  if (!newcomer_probes_.empty()) return;  // of a probe that was given up
  if (!probe_) throw Error(Errc::kProtocol, "it sent an answer to a probe that it was not asked for");
  probe_->on_frame(host, type, payload);
}

void RankLaunch::launch() {
  if (probe_) {
    for (const auto& [host, address] : addresses_)
      log::info("{} is reached by the others at {} ({})", agents_.host(host).name, address.address, address.interface);
    log::info("the networks are known after {} ms", agents_.milliseconds_since_start());
  }
  master_address_ = addresses_.at(spec_.allocation.placements.front().host).address;
  master_port_ = master_port();
  for (std::size_t i = 0; i < spec_.allocation.hosts.size(); ++i) {
    const int host = static_cast<int>(i);
    Launch message = launch_message(spec_, host, variables(0), addresses_.at(host), kOutputWindow);
    message.topology = topology_;
    agents_.send(host, ToAgent::kLaunch, encode(message));
  }
}

void RankLaunch::start(const Membership::Start& start, int generation) {
  if (addresses_.contains(start.host)) return send(start, generation);
  Starts& starts = waiting_[start.host];
  starts.emplace_back(start, generation);
  if (starts.size() == 1) agents_.connect(start.host);
}

void RankLaunch::send(const Membership::Start& start, int generation) {
  const Launch message = launch_message(spec_, agents_.host(start.host), start, variables(generation),
                                        addresses_.at(start.host), kOutputWindow);
  agents_.send(start.host, ToAgent::kLaunch, encode(message));
}

std::string RankLaunch::obstacle(const Host& host) const {
  const auto is_it = [&](const auto& each) { return is_same_host(agents_.host(each.first), host); };
  if (std::any_of(addresses_.begin(), addresses_.end(), is_it)) return "";
  if (std::any_of(waiting_.begin(), waiting_.end(), is_it)) return "";
  const bool is_here = is_local(spec_, host);
  if (std::string refusal = agents_.refusal(host); !refusal.empty()) return refusal;
  for (const auto& [index, address] : addresses_) {
    const Host& member = agents_.host(index);
    if (is_here && is_local(spec_, member)) return "";  // as in NewcomerProbe
    if (std::string why = loopback_obstacle(member.name, address); !why.empty()) return why;
  }
  return "";
}

bool RankLaunch::take_in(int host) {
  if (!waiting_.contains(host)) return false;
  to_probe_.push_back(host);
  probe_next();
  return true;
}

void RankLaunch::on_agent_gone(int host) {
  if (!spec_.elastic) return;
  addresses_.erase(host);
  waiting_.erase(host);
  std::erase(to_probe_, host);
  if (probed_ < 0 || !newcomer_probes_.back()->asks(host)) return;
  newcomer_probes_.back()->give_up();
  if (probed_ != host) to_probe_.push_front(probed_);  // tried again without that host
  probed_ = -1;
  probe_next();
}

NewcomerProbe::Member RankLaunch::member(int host, bool is_local) const {
  const auto address = addresses_.find(host);
  return {host,
          {agents_.host(host).name, agents_.hello(host).network, is_local},
          address == addresses_.end() ? HostAddress() : address->second};
}

/// One host after the other: a host that cannot join is then known by name.
void RankLaunch::probe_next() {
  if (probed_ >= 0 || to_probe_.empty()) return;
  probed_ = to_probe_.front();
  to_probe_.pop_front();
  std::vector<NewcomerProbe::Member> members;
  for (const auto& [host, address] : addresses_) members.push_back(member(host, is_local(spec_, agents_.host(host))));
  const auto send_frame = [this](int host, ToAgent type, std::string payload) {
    agents_.send(host, type, std::move(payload));
  };
  const auto done = [this, host = probed_](const Status& status, const HostAddress& address) {
    const auto take_up = [this, host, status, address] { on_newcomer(host, status, address); };
    boost::asio::post(executor_, take_up);
  };
  newcomer_probes_.push_back(
      std::make_unique<NewcomerProbe>(executor_, member(probed_, is_local(spec_, agents_.host(probed_))),
                                      std::move(members), spec_.network_interfaces, send_frame, done));
  newcomer_probes_.back()->start(static_cast<std::int64_t>(newcomer_probes_.size()));
}

void RankLaunch::on_newcomer(int host, const Status& status, const HostAddress& address) {
  if (probed_ != host) return;  // it has gone meanwhile
  probed_ = -1;
  const Starts starts = std::move(waiting_.extract(host).mapped());
  if (status.ok()) {
    log::info("{} has joined the job and is reached at {} ({})", agents_.host(host).name, address.address,
              address.interface);
    addresses_[host] = address;
    for (const auto& [start, generation] : starts) send(start, generation);
  } else {
    agents_.send(host, ToAgent::kEnd, encode(End{}));
    on_not_joined(host, status.message());
  }
  probe_next();
}

JobVariables RankLaunch::variables(int generation) const {
  const int most_generations = spec_.elastic ? spec_.elastic->reset_limit.value_or(0) : 0;
  return {id_, generation, most_generations, master_address_, master_port_};
}

std::vector<std::string> RankLaunch::interfaces() const {
  std::vector<std::string> result;
  for (const auto& [host, address] : addresses_) result.push_back(address.interface);
  return result;
}

/// A free port of rank 0's host. The agent of an only host chooses one by itself.
int RankLaunch::master_port() const {
  if (spec_.allocation.hosts.size() == 1) return 0;
  return agents_.hello(spec_.allocation.placements.front().host).free_port;
}

}  // namespace runjob
