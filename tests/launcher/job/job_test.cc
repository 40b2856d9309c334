#include "launcher/job/job.hpp"

#include <atomic>
#include <csignal>
#include <functional>
#include <limits>
#include <map>
#include <random>
#include <thread>
#include <vector>

#include <fmt/format.h>

#include "base/log.hpp"
#include "base/version.hpp"
#include "hostfile/parse_hosts.hpp"
#include "launcher/job/output_options.hpp"
#include "tests/catch.hpp"
#include "tests/launcher/frame_peer.hpp"
#include "tests/launcher/redirected_output.hpp"

using namespace runjob;
using namespace std::chrono_literals;

namespace {

/// Plays the agent of one host, on a thread of its own: no assertions there.
using Script = std::function<void(AgentPeer& agent)>;

struct Outcome {
  int status = -1;
  std::string output;
  std::string errors;
};

JobSpec spec_for(const std::string& hosts) {
  JobSpec spec;
  spec.allocation = allocate(parse_host_list(hosts), std::nullopt);
  for (std::size_t host = 0; host < spec.allocation.hosts.size(); ++host)
    spec.local_hosts.push_back(static_cast<int>(host));
  spec.command = {"train"};
  spec.working_directory = "/";
  spec.environment["OMP_NUM_THREADS"] = "1";
  return spec;
}

/// Runs a job whose agents follow `scripts`, one for each host.
Outcome run(const JobSpec& spec, const std::vector<Script>& scripts) {
  ::signal(SIGPIPE, SIG_IGN);
  const UniqueFd output = memory_file();
  const UniqueFd errors = memory_file();
  std::map<int, UniqueFd> ours;
  std::vector<std::thread> agents;
  for (std::size_t i = 0; i < scripts.size(); ++i) {
    auto [our_end, its_end] = socket_pair();
    ours.emplace(static_cast<int>(i), std::move(our_end));
    agents.emplace_back([script = scripts[i], socket = its_end.release()] {
      AgentPeer agent{UniqueFd(socket)};
      script(agent);
    });
  }
  Outcome outcome;
  {
    const Redirected out(STDOUT_FILENO, output.get());
    const Redirected err(STDERR_FILENO, errors.get());
    log::configure(log::Level::kWarn, "");  // another file of this program logs errors alone
    Job job(spec, std::move(ours), {});
    outcome.status = job.run();
    log::configure(log::Level::kError, "");
  }
  for (std::thread& agent : agents) agent.join();
  outcome.output = contents(output);
  outcome.errors = contents(errors);
  return outcome;
}

void say_hello(AgentPeer& agent) {
  Hello hello;
  hello.version = kVersion;
  hello.free_port = 12345;
  agent.send(ToLauncher::kHello, -1, encode(hello));
}

void start_rank(AgentPeer& agent, int rank) {
  agent.send(ToLauncher::kStarted, rank, encode(Started{100 + rank, {}, {}}));
}

/// Says hello, waits for the launch, and starts `rank`.
Launch start(AgentPeer& agent, int rank) {
  say_hello(agent);
  Launch launch = decode<Launch>(agent.next(ToAgent::kLaunch).payload);
  start_rank(agent, rank);
  return launch;
}

void exit_rank(AgentPeer& agent, int rank, int wait_status, bool stopped_by_us = false) {
  Exited exited;
  exited.wait_status = wait_status;
  exited.stopped_by_us = stopped_by_us;
  agent.send(ToLauncher::kExited, rank, encode(exited));
}

/// Ends `rank` and leaves in good order.
void finish(AgentPeer& agent, int rank, int wait_status, bool stopped_by_us = false) {
  exit_rank(agent, rank, wait_status, stopped_by_us);
  agent.send(ToLauncher::kFinished);
}

/// Waits until the rank is to be ended, and ends it by that signal; the message.
End finish_on_end(AgentPeer& agent, int rank) {
  const End end = decode<End>(agent.next(ToAgent::kEnd).payload);
  finish(agent, rank, end.signal, /*stopped_by_us=*/true);
  return end;
}

}  // namespace

TEST_CASE("a job on one host is launched without waiting for a hello, and its output is shown", "[unit]") {
  Launch launch;
  const Outcome outcome = run(spec_for("a:1"), {[&](AgentPeer& agent) {
                                launch = decode<Launch>(agent.next(ToAgent::kLaunch).payload);
                                say_hello(agent);
                                start_rank(agent, 0);
                                agent.send(ToLauncher::kOutput, 0, "a line\n", Stream::kStdout);
                                finish(agent, 0, 0);
                              }});
  CHECK(outcome.status == 0);
  CHECK(outcome.output == "[0]<stdout>:a line\n");
  CHECK(outcome.errors.empty());
  CHECK(launch.command == std::vector<std::string>{"train"});
  REQUIRE(launch.processes.size() == 1);
  CHECK(launch.processes[0].environment.at("MASTER_ADDR") == "127.0.0.1");
}

TEST_CASE("a job on several hosts is launched when all agents are ready", "[unit]") {
  std::atomic<bool> second_is_ready{false};
  bool launched_in_time = false;
  Launch launch;
  const Outcome outcome = run(spec_for("a:1,b:1"), {[&](AgentPeer& agent) {
                                                      launch = start(agent, 0);
                                                      launched_in_time = second_is_ready;
                                                      finish(agent, 0, 0);
                                                    },
                                                    [&](AgentPeer& agent) {
                                                      second_is_ready = true;
                                                      start(agent, 1);
                                                      finish(agent, 1, 0);
                                                    }});
  CHECK(outcome.status == 0);
  CHECK(launched_in_time);
  CHECK(launch.processes.at(0).environment.at("MASTER_PORT") == "12345");
}

TEST_CASE("a rank that fails ends the others, and the message names it", "[unit]") {
  JobSpec spec = spec_for("a:1,b:1");
  spec.failure_lead = "Lead: ";
  End end;
  const Outcome outcome = run(spec, {[&](AgentPeer& agent) {
                                       start(agent, 0);
                                       finish(agent, 0, 3 << 8);
                                     },
                                     [&](AgentPeer& agent) {
                                       start(agent, 1);
                                       end = finish_on_end(agent, 1);
                                     }});
  CHECK(outcome.status == 3);
  CHECK(end.signal == SIGTERM);
  CHECK_FALSE(end.told);
  CHECK(outcome.errors == "runjob: error: Lead: rank 0 on a (pid 100) exited with status 3; stopped 1 other rank\n");
}

TEST_CASE("requests of ranks are answered by the job's rendezvous, also across hosts", "[unit]") {
  rendezvous::Response value;
  const Outcome outcome = run(spec_for("a:1,b:1"), {[&](AgentPeer& agent) {
                                                      start(agent, 0);
                                                      const RelayedRequest get{7, {"GET", "/v1/kv/s/k?wait=30", "", 0}};
                                                      agent.send(ToLauncher::kRequest, -1, encode(get));
                                                      const auto reply =
                                                          decode<RelayedReply>(agent.next(ToAgent::kReply).payload);
                                                      if (reply.id == 7) value = reply.response;
                                                      finish(agent, 0, 0);
                                                    },
                                                    [&](AgentPeer& agent) {
                                                      start(agent, 1);
                                                      const RelayedRequest put{9, {"PUT", "/v1/kv/s/k", "value", 1}};
                                                      agent.send(ToLauncher::kRequest, -1, encode(put));
                                                      agent.next(ToAgent::kReply);
                                                      finish(agent, 1, 0);
                                                    }});
  CHECK(outcome.status == 0);
  CHECK(value.body == rendezvous::Body("value"));
}

TEST_CASE("what a host sends in the name of another host's rank does not count, and the host is named", "[unit]") {
  rendezvous::Response gathered, failing;
  const Outcome outcome = run(spec_for("a:1,b:1"), {[](AgentPeer& agent) {
                                                      start(agent, 0);
                                                      agent.next(ToAgent::kEnd);
                                                      finish(agent, 0, 0);
                                                    },
                                                    [&](AgentPeer& agent) {
                                                      start(agent, 1);
                                                      const auto ask = [&](const char* target, const char* body) {
                                                        const RelayedRequest request{1, {"POST", target, body, 0}};
                                                        agent.send(ToLauncher::kRequest, -1, encode(request));
                                                        const auto reply = agent.next(ToAgent::kReply);
                                                        return decode<RelayedReply>(reply.payload).response;
                                                      };
                                                      gathered = ask("/v1/gather/x?index=0", "blob");
                                                      failing =
                                                          ask("/v1/failing", R"({"own": true, "reason": "forged"})");
                                                      finish(agent, 1, 3 << 8);
                                                    }});
  CHECK(gathered.status == 403);
  CHECK(gathered.body.str().find("rank 0 is not on b") != std::string::npos);
  CHECK(failing.status == 403);
  CHECK(outcome.status == 3);
  const std::string warning =
      "runjob: warning: a process on b sent requests in the name of rank 0, which is on a; they were refused\n";
  CHECK(outcome.errors.starts_with(warning));
  CHECK(outcome.errors.find("error: rank 1 on b") == warning.size() + std::string("runjob: ").size());
  CHECK(outcome.errors.find("forged") == std::string::npos);
}

TEST_CASE("an agent that is lost ends the job with the reason that is known", "[unit]") {
  const auto errors = [](const Script& last_act) {
    const Outcome outcome = run(spec_for("a:1"), {[&](AgentPeer& agent) {
                                  start(agent, 0);
                                  last_act(agent);
                                }});
    CHECK(outcome.status == 125);
    return outcome.errors;
  };
  const std::string lost = "runjob: error: lost the agent on a: ";
  CHECK(errors([](AgentPeer&) {}) == lost + "it closed the connection\n");
  CHECK(errors([](AgentPeer& agent) {
          agent.send(ToLauncher::kFailed, -1, "a second launch");
          agent.wait_for_end();
        }) == lost + "it gave up: a second launch\n");
  CHECK(errors([](AgentPeer& agent) {
          start_rank(agent, 1);
          agent.wait_for_end();
        }) == lost + "it sent a frame for rank 1, which is not on that host\n");
  CHECK(errors([](AgentPeer& agent) {
          agent.send(ToLauncher::kStackTrace, 0, encode(StackTrace{}));
          agent.wait_for_end();
        }) == lost + "it sent a stack that it was not asked for\n");
  CHECK(errors([](AgentPeer& agent) {
          agent.send(ToLauncher::kProbeResults, -1, "");
          agent.wait_for_end();
        }) == lost + "it sent an answer to a probe that it was not asked for\n");
}

TEST_CASE("all hosts that cannot be reached are named before the job ends", "[unit]") {
  const auto other_version = [](AgentPeer& agent) {
    Hello hello;
    hello.version = "0.0.0";
    agent.send(ToLauncher::kHello, -1, encode(hello));
    agent.wait_for_end();
  };
  const Outcome outcome = run(spec_for("a:1,b:1"), {other_version, [](AgentPeer&) {}});
  CHECK(outcome.status == 125);
  CHECK_THAT(outcome.errors, ContainsSubstring("a: the agent on a is of version 0.0.0, not "));
  CHECK_THAT(outcome.errors, ContainsSubstring("b: it closed the connection\n"));
}

TEST_CASE("an agent that a batch system has signalled ends the whole job", "[unit]") {
  End end;
  JobSpec spec = spec_for("a:1");
  spec.slurm.emplace();
  const Outcome outcome = run(spec, {[&](AgentPeer& agent) {
                                start(agent, 0);
                                agent.send(ToLauncher::kToldToEnd);
                                end = finish_on_end(agent, 0);
                              }});
  CHECK(outcome.status == 128 + SIGTERM);
  CHECK(end.told);
  CHECK_THAT(outcome.errors, ContainsSubstring("SLURM ends the job: it has sent SIGTERM to its processes on a"));
}

TEST_CASE("an agent that sends what none would ends the job, and its host is named", "[unit]") {
  const auto frame = [](ToLauncher type, int rank, const std::string& payload = "", Stream stream = Stream::kNone) {
    return [=](AgentPeer& agent) { agent.send(type, rank, payload, stream); };
  };
  const std::string nested(1'000'000, '\x81'), most = encode(Credit{std::numeric_limits<std::int64_t>::max()});
  struct Attack {
    Script script;
    std::string named;
  };
  const std::vector<Attack> attacks{
      {frame(ToLauncher::kExited, 1, nested), "nested more than 32 levels deep"},
      {frame(ToLauncher::kRemaining, -1, nested), "nested more than 32 levels deep"},
      {frame(ToLauncher::kExited, -1, encode(Exited{})), "it sent a frame for rank -1, which is not on that host"},
      {frame(ToLauncher::kStackTrace, -1, encode(StackTrace{})),
       "it sent a frame for rank -1, which is not on that host"},
      {frame(ToLauncher::kJoined, 0), "it sent a frame for rank 0, which is not on that host"},
      {frame(ToLauncher::kOutput, 2, "x", Stream::kStdout), "it sent a frame for rank 2, which is not on that host"},
      {frame(ToLauncher::kFinished, 1), "it sent a frame for rank 1, which is not on that host"},
      {frame(ToLauncher::kInputCredit, 1, most), "it gave credit for the input of rank 1, which has none"},
      {frame(ToLauncher::kToldToEnd, -1), "it reported that SLURM ends the job, which SLURM has not started"},
      {frame(ToLauncher::kStarted, 1, encode(Started{7, {}, {}})), "it reported a second start of rank 1"},
      {frame(ToLauncher::kStartFailed, 1, encode(StartFailed{})), "it reported a second start of rank 1"},
      {frame(ToLauncher::kHello, -1, encode(Hello{})), "it sent a second hello"},
      {frame(ToLauncher::kFinished, -1), "it left while rank 1 ran there"},
      {[](AgentPeer& agent) {
         exit_rank(agent, 1, 0);
         exit_rank(agent, 1, 0);
       },
       "it reported the end of rank 1, which did not run"},
      {frame(ToLauncher::kOutput, 1, std::string(kOutputWindow + 1, 'x'), Stream::kStdout),
       "it sent more output of rank 1 than it had credit for"},
  };
  for (const Attack& attack : attacks) {
    INFO(attack.named);
    const Outcome outcome = run(spec_for("a:1,b:1"), {[](AgentPeer& agent) {
                                                        start(agent, 0);
                                                        finish_on_end(agent, 0);
                                                      },
                                                      [&](AgentPeer& agent) {
                                                        start(agent, 1);
                                                        attack.script(agent);
                                                        agent.wait_for_end();
                                                      }});
    CHECK(outcome.status == 125);
    CHECK_THAT(outcome.errors, ContainsSubstring("lost the agent on b: "));
    CHECK_THAT(outcome.errors, ContainsSubstring(attack.named));
    CHECK_THAT(outcome.errors, !ContainsSubstring("agent on a"));
  }
}

TEST_CASE("results of a call are taken from the processes of the host that sends them, and from no others", "[unit]") {
  auto [callers_end, its_end] = socket_pair();
  JobSpec spec = spec_for("a:1,b:1");
  spec.call = CallDescriptors{memory_file().release(), its_end.release()};
  std::map<int, int> statuses;  // by process
  const Outcome outcome = run(spec, {[&](AgentPeer& agent) {
                                       start(agent, 0);
                                       for (const int process : {-1, 0, 1, 7}) {
                                         const rendezvous::Request result{"POST", "/v1/call/result", "value", process};
                                         agent.send(ToLauncher::kRequest, -1, encode(RelayedRequest{1, result}));
                                         const std::string reply = agent.next(ToAgent::kReply).payload;
                                         statuses[process] = decode<RelayedReply>(reply).response.status;
                                       }
                                       finish(agent, 0, 0);
                                     },
                                     [&](AgentPeer& agent) {
                                       start(agent, 1);
                                       finish(agent, 1, 0);
                                     }});
  CHECK(outcome.status == 0);
  CHECK(statuses == std::map<int, int>{{-1, 400}, {0, 200}, {1, 403}, {7, 400}});
}

TEST_CASE("whatever frames an agent sends, the job ends with a message of its own", "[unit]") {
  const std::vector<std::string> payloads{
      "",
      encode(Started{7, {0}, {"GPU 0"}}),
      encode(StartFailed{StartFailed::Step::kExec, 2, "text"}),
      encode(Exited{}),
      encode(Exited{.wait_status = 9}),
      encode(StackTrace{"TID 1:\n#0  0x1 poll\n", "", true}),
      encode(Credit{100}),
      encode(Remaining{{{0, 7, "name"}}, 5}),
      encode(RelayedRequest{1, {"POST", "/v1/join", R"({"rank": 0, "pid": 7})", 0}}),
      encode(RelayedRequest{2, {"POST", "/v1/failing", R"({"own": false, "reason": "x", "lost": 1, "late": 0})", 1}}),
      encode(RelayedRequest{3, {"POST", "/v1/gather/x?wait=1", "blob", 0}}),
      encode(RelayedRequest{4, {"PUT", "/v1/kv/s/k", "value", -1}})};
  for (unsigned seed = 0; seed < 300; ++seed) {
    INFO("seed " << seed);
    const Script attack = [&payloads, seed](AgentPeer& agent) {
      std::mt19937 random(seed);
      start(agent, 0);
      for (int i = 0; i < 20; ++i) {
        std::string payload = payloads[random() % payloads.size()];
        if (random() % 3 == 0 && !payload.empty()) payload[random() % payload.size()] = static_cast<char>(random());
        const auto type = static_cast<ToLauncher>(random() % 32);
        agent.send(type, static_cast<int>(random() % 4) - 1, payload, static_cast<Stream>(random() % 3));
      }
    };
    const Outcome outcome = run(spec_for("a:2"), {attack});
    CHECK(outcome.status != 0);
    CHECK_THAT(outcome.errors, Catch::Matchers::StartsWith("runjob: "));
    CHECK_THAT(outcome.errors, !ContainsSubstring("_M_") && !ContainsSubstring("std::"));
  }
}

TEST_CASE("an agent gets no more input than fits into the window, whatever credit it gives", "[unit]") {
  for (const std::int64_t credit : {std::numeric_limits<std::int64_t>::max(), std::int64_t{1}}) {
    INFO(credit);
    const Outcome outcome = run(spec_for("a:1"), {[&](AgentPeer& agent) {
                                  start(agent, 0);
                                  agent.send(ToLauncher::kInputCredit, 0, encode(Credit{credit}));
                                  agent.send(ToLauncher::kInputCredit, 0, encode(Credit{credit}));
                                  agent.wait_for_end();
                                }});
    CHECK(outcome.status == 125);
    CHECK_THAT(outcome.errors,
               ContainsSubstring(fmt::format(
                   "lost the agent on a: it gave credit for {} bytes of input, of which it had 0", credit)));
  }
}

TEST_CASE("the reports of a host that it waits for processes are few and short", "[unit]") {
  const Outcome outcome =
      run(spec_for("a:1"), {[&](AgentPeer& agent) {
            start(agent, 0);
            const Remaining many{std::vector<RemainingProcess>(9, {0, 7, std::string(100'000, 'n')}), 5};
            for (int i = 0; i < 1000; ++i) agent.send(ToLauncher::kRemaining, -1, encode(many));
            finish(agent, 0, 0);
          }});
  CHECK(outcome.status == 0);
  CHECK(std::count(outcome.errors.begin(), outcome.errors.end(), '\n') == 8);
  CHECK(outcome.errors.size() < 10'000);
}

TEST_CASE("at the time limit the stacks are collected before the ranks are ended", "[unit]") {
  JobSpec spec = spec_for("a:1");
  spec.time_limit = 1ms;
  spec.stack_traces_on_timeout = true;
  const Outcome outcome =
      run(spec, {[&](AgentPeer& agent) {
            start(agent, 0);
            agent.next(ToAgent::kStackTraces);
            agent.send(ToLauncher::kStackTrace, 0, encode(StackTrace{"TID 1:\n#0  0x1 poll\n", "", false}));
            finish_on_end(agent, 0);
          }});
  CHECK(outcome.status == 124);
  CHECK_THAT(outcome.errors, ContainsSubstring("the job did not end within the 0.001 s of --timeout"));
}

TEST_CASE("the second interrupt kills all ranks", "[unit]") {
  std::vector<End> ends;
  const Outcome outcome = run(spec_for("a:1"), {[&](AgentPeer& agent) {
                                start(agent, 0);
                                for (int i = 0; i < 2; ++i) {
                                  ::kill(::getpid(), SIGINT);
                                  ends.push_back(decode<End>(agent.next(ToAgent::kEnd).payload));
                                }
                                finish(agent, 0, SIGKILL, /*stopped_by_us=*/true);
                              }});
  CHECK(outcome.status == 128 + SIGINT);
  REQUIRE(ends.size() == 2);
  CHECK(ends[0].signal == SIGINT);
  CHECK(ends[0].grace_ms == 10'000);
  CHECK(ends[1].grace_ms == 0);
  CHECK_THAT(outcome.errors, ContainsSubstring("killing all ranks"));
}
