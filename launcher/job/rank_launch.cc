#include "launcher/job/rank_launch.hpp"

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <sys/random.h>
#include <utility>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/log.hpp"
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
  return spec_.allocation.hosts.size() > 1 || !spec_.network_interfaces.included.empty();
}

void RankLaunch::find_addresses(std::function<void(const Status& status)> done) {
  std::vector<ProbedHost> probed;
  for (std::size_t i = 0; i < spec_.allocation.hosts.size(); ++i) {
    const int host = static_cast<int>(i);
    const bool is_local = std::count(spec_.local_hosts.begin(), spec_.local_hosts.end(), host) != 0;
    probed.push_back({agents_.name(host), agents_.hello(host).network, is_local});
  }
  const auto send = [this](int host, ToAgent type, std::string payload) {
    agents_.send(host, type, std::move(payload));
  };
  probe_.emplace(executor_, std::move(probed), spec_.network_interfaces, send,
                 [this, done = std::move(done)](const Status& status, std::vector<HostAddress> addresses) {
                   if (status.ok()) addresses_ = std::move(addresses);
                   done(status);
                 });
  probe_->start();
}

void RankLaunch::on_probe_frame(int host, ToLauncher type, std::string_view payload) {
  if (!probe_) throw Error(Errc::kProtocol, "it sent an answer to a probe that it was not asked for");
  probe_->on_frame(host, type, payload);
}

void RankLaunch::launch() {
  if (probe_) {
    for (std::size_t i = 0; i < addresses_.size(); ++i) {
      log::info("{} is reached by the others at {} ({})", agents_.name(static_cast<int>(i)), addresses_[i].address,
                addresses_[i].interface);
    }
    log::info("the networks are known after {} ms", agents_.milliseconds_since_start());
  }
  for (std::size_t i = 0; i < spec_.allocation.hosts.size(); ++i) {
    const int host = static_cast<int>(i);
    Launch message = launch_message(spec_, host, variables(0), addresses_.at(i), kOutputWindow);
    message.topology = topology_;
    agents_.send(host, ToAgent::kLaunch, encode(message));
  }
}

void RankLaunch::start(const Membership::Start& start, int generation) {
  const HostAddress& address = addresses_.at(static_cast<std::size_t>(start.host));
  const Launch message = launch_message(spec_, start, variables(generation), address, kOutputWindow);
  agents_.send(start.host, ToAgent::kLaunch, encode(message));
}

JobVariables RankLaunch::variables(int generation) const {
  const auto first_host = static_cast<std::size_t>(spec_.allocation.placements.front().host);
  return {id_, generation, addresses_.at(first_host).address, master_port()};
}

std::vector<std::string> RankLaunch::interfaces() const {
  std::vector<std::string> result;
  for (const HostAddress& each : addresses_) result.push_back(each.interface);
  return result;
}

/// A free port of rank 0's host. The agent of an only host chooses one by itself.
int RankLaunch::master_port() const {
  if (spec_.allocation.hosts.size() == 1) return 0;
  return agents_.hello(spec_.allocation.placements.front().host).free_port;
}

}  // namespace runjob
