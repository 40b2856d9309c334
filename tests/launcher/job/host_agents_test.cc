#include "launcher/job/host_agents.hpp"

#include <csignal>

#include "base/error.hpp"
#include "base/version.hpp"
#include "hostfile/parse_hosts.hpp"
#include "launcher/job/channel_local.hpp"
#include "tests/catch.hpp"
#include "tests/launcher/frame_peer.hpp"

using namespace runjob;

namespace {

/// A job of one host, which has an agent, and of hosts that may join it.
struct Hosts : HostAgents::Events {
  void on_agent_ready(int) override {}
  void on_frame(int, const FrameHeader<ToLauncher>&, std::string_view) override {}
  void on_batch_end() override {}
  void on_agent_end(int host, HostAgents::AgentEnd end, const std::string& how) override {
    ended.push_back(host);
    last_end = end;
    last_how = how;
  }

  /// Counts the attempts, and reaches one of `ours` with each, as long as there are any.
  struct Connector : HostConnector {
    Connector(int& made, std::vector<UniqueFd>& ours, boost::asio::any_io_executor loop)
        : attempts(made), sockets(&ours), executor(std::move(loop)) {}
    boost::asio::awaitable<ReadyChannel> open(const Host&, RemoteMessage) override {
      if (sockets->size() <= static_cast<std::size_t>(attempts++)) throw Error(Errc::kConnect, "there is no such host");
      UniqueFd socket = std::move((*sockets)[static_cast<std::size_t>(attempts - 1)]);
      co_return ReadyChannel{local_channel(executor, std::move(socket)), ""};
    }
    int& attempts;
    std::vector<UniqueFd>* sockets;
    boost::asio::any_io_executor executor;
  };

  Hosts() {
    ::signal(SIGPIPE, SIG_IGN);  // as in the launcher: an agent may have left
    spec.allocation = allocate(parse_host_list("a:1"), std::nullopt);
    spec.elastic.emplace();
    spec.elastic->more_hosts = parse_host_list("b:1");
    auto [ours, theirs] = socket_pair();
    agent = std::move(theirs);
    std::map<int, UniqueFd> local;
    local.emplace(0, std::move(ours));
    agents.emplace(context, spec, output, *this);
    agents->reach(std::move(local),
                  [this](auto&&...) { return std::make_unique<Connector>(attempts, sockets, context.get_executor()); });
  }

  boost::asio::io_context context;
  JobSpec spec;
  OutputRelay output{context.get_executor(), {}, [](int, Stream, std::int64_t) {}};
  UniqueFd agent;
  int attempts = 0;
  std::vector<UniqueFd> sockets;
  HostAgents::AgentEnd last_end{};
  std::string last_how;
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

TEST_CASE("a host that comes back after it was lost owes nothing for the processes of its last agent", "[unit]") {
  Hosts hosts;
  std::vector<AgentPeer> agents;
  for (int i = 0; i < 2; ++i) {
    auto [ours, theirs] = socket_pair();
    hosts.sockets.push_back(std::move(ours));
    agents.emplace_back(std::move(theirs));
  }
  Hello hello;
  hello.version = kVersion;
  hosts.agents->add_process(1);
  const int process = 1;  // process 0 is that of the other host
  const auto run_until_end = [&](AgentPeer& agent) {
    const std::size_t before = hosts.ended.size();
    agent.close();
    while (hosts.ended.size() == before) hosts.context.run_one();
  };
  hosts.agents->connect(1);
  agents[0].send(ToLauncher::kHello, -1, encode(hello));
  agents[0].send(ToLauncher::kStarted, process, encode(Started{7, {}, {}}));
  run_until_end(agents[0]);
  CHECK(hosts.last_end == HostAgents::AgentEnd::kLost);

  hosts.agents->connect(1);
  agents[1].send(ToLauncher::kHello, -1, encode(hello));
  agents[1].send(ToLauncher::kFinished);
  run_until_end(agents[1]);
  CHECK(hosts.last_end == HostAgents::AgentEnd::kFinished);
  CHECK(hosts.last_how == "it closed the connection");
}

TEST_CASE("no host is reached any more when the ranks are being ended", "[unit]") {
  Hosts hosts;
  hosts.agents->end_ranks({});
  hosts.agents->connect(1);
  hosts.context.poll();
  CHECK(hosts.attempts == 0);
  CHECK(hosts.ended.empty());
}
