#include "launcher/job/host_agents.hpp"

#include "base/error.hpp"
#include "hostfile/parse_hosts.hpp"
#include "tests/catch.hpp"
#include "tests/launcher/frame_peer.hpp"

using namespace runjob;

namespace {

/// A job of one host, which has an agent, and of hosts that may join it.
struct Hosts : HostAgents::Events {
  void on_agent_ready(int) override {}
  void on_frame(int, const FrameHeader<ToLauncher>&, std::string_view) override {}
  void on_batch_end() override {}
  void on_agent_end(int host, HostAgents::AgentEnd, const std::string&) override { ended.push_back(host); }

  /// Reaches no host, and counts the attempts.
  struct Connector : HostConnector {
    explicit Connector(int& made) : attempts(made) {}
    boost::asio::awaitable<ReadyChannel> open(const Host&, RemoteMessage) override {
      ++attempts;
      throw Error(Errc::kConnect, "there is no such host");
      co_return ReadyChannel();
    }
    int& attempts;
  };

  Hosts() {
    spec.allocation = allocate(parse_host_list("a:1"), std::nullopt);
    spec.elastic.emplace();
    spec.elastic->more_hosts = parse_host_list("b:1");
    auto [ours, theirs] = socket_pair();
    agent = std::move(theirs);
    std::map<int, UniqueFd> local;
    local.emplace(0, std::move(ours));
    agents.emplace(context, spec, output, *this);
    agents->reach(std::move(local), [this](auto&&...) { return std::make_unique<Connector>(attempts); });
  }

  boost::asio::io_context context;
  JobSpec spec;
  OutputRelay output{context.get_executor(), {}, [](int, Stream, std::int64_t) {}};
  UniqueFd agent;
  int attempts = 0;
  std::vector<int> ended;
  std::optional<HostAgents> agents;
};

}  // namespace

TEST_CASE("a host that is to join a job is reached", "[unit]") {
  Hosts hosts;
  hosts.agents->connect(1);
  hosts.context.poll();
  CHECK(hosts.attempts == 1);
  CHECK(hosts.ended == std::vector<int>{1});
}

TEST_CASE("no host is reached any more when the ranks are being ended", "[unit]") {
  Hosts hosts;
  hosts.agents->end_ranks({});
  hosts.agents->connect(1);
  hosts.context.poll();
  CHECK(hosts.attempts == 0);
  CHECK(hosts.ended.empty());
}
