#include "launcher/slurm/slurm_connector.hpp"

#include <algorithm>
#include <chrono>
#include <set>
#include <utility>

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <fmt/format.h>

#include "base/error.hpp"
#include "base/log.hpp"
#include "base/program_path.hpp"
#include "base/screen_text.hpp"
#include "base/secrets/secret.hpp"
#include "launcher/network/interface_facts.hpp"
#include "launcher/sealed_channel/agent_call.hpp"
#include "launcher/slurm/srun_command.hpp"

namespace runjob {
namespace {

namespace asio = boost::asio;
using namespace std::chrono_literals;

constexpr std::size_t kKeptLines = 20;
constexpr std::chrono::milliseconds kPatience{60'000};     // prologs of nodes may take their time
constexpr std::chrono::milliseconds kReasonPatience{300};  // srun reports the end of a task after the channel's

/// In an elastic job also those that have no rank at first: a step gets no node later.
std::vector<std::string> nodes_of(const JobSpec& spec) {
  std::vector<std::string> names;
  for (const Host& host : spec.allocation.hosts) names.push_back(host.name);
  if (!spec.elastic) return names;
  for (const Host& host : spec.elastic->more_hosts) names.push_back(host.name);
  return names;
}

}  // namespace

SlurmConnector::SlurmConnector(asio::any_io_executor executor, const JobSpec& spec)
    : executor_(executor), spec_(spec), agent_(program_path("runjob-agent")), more_lines_(executor) {
  for (const std::string& name : nodes_of(spec))
    nodes_[name].news = std::make_unique<asio::steady_timer>(executor, asio::steady_timer::time_point::max());
}

SlurmConnector::~SlurmConnector() = default;

/// The lines of srun concern all hosts, so `on_message` of a single host is not called.
asio::awaitable<ReadyChannel> SlurmConnector::open(const Host& host, RemoteMessage) {
  if (!listener_) start();
  if (std::string reason = refusal(host); !reason.empty()) throw Error(Errc::kUsage, std::move(reason));
  Node& node = nodes_.at(host.name);
  co_await wait_for_news(node);
  if (!node.channel) throw Error(Errc::kConnect, node.failure);
  node.served = true;
  ReadyChannel ready;
  ready.channel = std::move(node.channel);
  co_return ready;
}

std::string SlurmConnector::refusal(const Host& host) const {
  const auto found = nodes_.find(host.name);
  if (found == nodes_.end()) return "it is no node of this SLURM job, which cannot grow; --spares keeps nodes ready";
  return found->second.served ? "its agent has ended, and SLURM starts no other one in this step" : "";
}

asio::awaitable<void> SlurmConnector::wait_for_news(Node& node) {
  if (node.channel || !node.failure.empty()) co_return;
  const auto limit = std::max<std::chrono::milliseconds>(spec_.ssh.connect_timeout, kPatience);
  node.news->expires_after(limit);
  const auto [cancelled] = co_await node.news->async_wait(asio::as_tuple(asio::use_awaitable));
  if (cancelled || node.channel || !node.failure.empty()) co_return;
  const std::string advice =
      lines_.empty() ? "can the nodes connect to this host? (--connect-timeout)" : explain_srun(lines_, agent_);
  node.failure = fmt::format("no answer within {:g} s; {}", std::chrono::duration<double>(limit).count(), advice);
}

void SlurmConnector::start() {
  const rendezvous::JobKey key = rendezvous::JobKey::random();
  const std::size_t strangers = nodes_.size() + 64;
  listener_.emplace(executor_, key, strangers,
                    [this](const std::string& name, const std::string& peer, std::unique_ptr<Channel> channel) {
                      on_agent(name, peer, std::move(channel));
                    });
  const std::string warning = gpu_warning(spec_.environment);
  if (!warning.empty()) log::warn("{}", warning);
  const AgentCall call{reachable_addresses(network_facts()), listener_->port(), key};
  const std::vector<std::string> names = nodes_of(spec_);
  const bool all_nodes = static_cast<int>(names.size()) == spec_.slurm->nodes;
  std::string input = encode(call);
  srun_.emplace(executor_, srun_command(names, all_nodes, agent_), srun_environment(spec_.environment), input,
                SrunProgram::Events{[this](const std::string& line) { on_line(line); },
                                    [this](const std::string& how) { on_end(how); }});
  wipe(input);  // it has the job's key
}

void SlurmConnector::on_agent(const std::string& name, const std::string& peer, std::unique_ptr<Channel> channel) {
  const auto found = nodes_.find(name);
  if (found != nodes_.end() && (found->second.channel || found->second.served))
    return log::warn("a second agent in the name of node {}, whose agent is connected, was refused; it came from {}",
                     name, peer);
  if (found == nodes_.end() || !found->second.failure.empty())
    return log::warn("an agent that is not waited for, in the name of node {}, was refused; it came from {}",
                     one_line(name.substr(0, 80)), peer);
  found->second.channel = std::move(channel);
  found->second.news->cancel();
}

void SlurmConnector::on_line(const std::string& line) {
  if (is_noise(line)) return;
  if (lines_.size() == kKeptLines) lines_.erase(lines_.begin());
  lines_.push_back(line);
  const bool all_served =
      std::all_of(nodes_.begin(), nodes_.end(), [](const auto& each) { return each.second.served; });
  // Until then it is part of the error, if there is one.
  if (all_served && !keep_for_explanation(line)) log::warn("{}", line);
  const std::vector<std::string> names = nodes_that_ended(line);
  if (names.empty()) return;
  ended_.insert(ended_.end(), names.begin(), names.end());
  more_lines_.expires_after(300ms);  // the reason often arrives after the end
  more_lines_.async_wait([this](boost::system::error_code error) {
    if (error) return;
    for (const std::string& name : std::exchange(ended_, {})) {
      const auto found = nodes_.find(name);
      if (found != nodes_.end()) fail(found->second, explain_srun(lines_, agent_));
    }
  });
}

/// True if the line is about nodes whose agents' ends are not explained yet.
bool SlurmConnector::keep_for_explanation(const std::string& line) {
  bool is_kept = false;
  for (const std::string& name : nodes_named(line)) {
    const auto found = nodes_.find(name);
    if (found == nodes_.end() || !found->second.end.empty()) continue;
    Node& node = found->second;
    if (node.explained && node.news->expiry() == asio::steady_timer::time_point::max()) continue;
    node.end = line;
    node.news->cancel();
    is_kept = true;
  }
  return is_kept;
}

void SlurmConnector::explain_end(const Host& host, std::function<void(const std::string& reason)> explained) {
  Node& node = nodes_.at(host.name);
  node.explained = true;
  if (!node.end.empty()) return explained(node.end);
  node.news->expires_after(kReasonPatience);
  node.news->async_wait([&node, explained = std::move(explained)](boost::system::error_code) {
    node.news->expires_at(asio::steady_timer::time_point::max());
    explained(node.end);
  });
}

void SlurmConnector::on_end(const std::string& how) {
  const std::string why = lines_.empty() ? fmt::format("srun {}", how) : explain_srun(lines_, agent_);
  for (auto& [name, node] : nodes_) fail(node, why);
}

void SlurmConnector::fail(Node& node, const std::string& why) {
  if (node.channel || node.served || !node.failure.empty()) return;
  node.failure = why;
  node.news->cancel();
}

void SlurmConnector::finish() {
  for (auto& [name, node] : nodes_) node.channel.reset();  // of nodes that got no rank: their agents end
  if (srun_) srun_->finish();
  std::set<std::string> lines;
  for (const auto& [name, node] : nodes_) {
    if (!node.explained && !node.end.empty()) lines.insert(node.end);
  }
  for (const std::string& line : lines) log::warn("{}", line);
}

}  // namespace runjob
