#include "runtime/collectives/hierarchical/exchanges/direct_exchange.hpp"

#include <numeric>

#include "tests/catch.hpp"
#include "tests/runtime/collectives/hierarchical/host_inputs.hpp"
#include "tests/runtime/collectives/hierarchical/thread_hosts.hpp"

using namespace runjob::runtime;

TEST_CASE("every host's bytes reach every other host, also none of them, again and again", "[runtime][unit]") {
  constexpr int kHosts = 4;
  const auto errors = run_hosts({{0, 1, 2, 3}, with_columns(1)}, [](HostChannels& channels) {
    const int own = channels.topology.host();
    for (const std::size_t bytes : {1u, 1000u, 300000u}) {
      // Host h sends h * bytes bytes of the value h to each other host.
      const auto length = [bytes](int host) { return static_cast<std::size_t>(host) * bytes; };
      const std::vector<char> input(length(own), static_cast<char>(own));
      std::vector<char> output(length(kHosts * (kHosts - 1) / 2), 'x'), expected = output;
      DirectExchange exchange(channels, input.data(), input.size(), output.data(), output.size());
      std::size_t place = 0;
      for (int host = 0; host < kHosts; ++host) {
        if (host == own) continue;
        exchange.receive(host, {place, length(host)});
        exchange.send(host, {0, length(own)});
        std::fill_n(expected.begin() + static_cast<std::ptrdiff_t>(place), length(host), static_cast<char>(host));
        place += length(host);
      }
      exchange.wait();
      if (output != expected) throw std::runtime_error(std::to_string(bytes) + " bytes");
    }
  });
  CHECK(errors == no_errors(kHosts));
}

TEST_CASE("messages go on while a rank copies bytes of its own", "[runtime][unit]") {
  constexpr std::size_t kBytes = 1000000, kMostBetween = 64u << 10;
  const auto errors = run_hosts({{0, 1}, with_columns(1)}, [&](HostChannels& channels) {
    const auto& transport = static_cast<const ThreadTransport&>(*channels.transport);
    const std::vector<char> input(kBytes, 'a');
    std::vector<char> copy(kBytes, 'x');
    DirectExchange exchange(channels, nullptr, 0, nullptr, 0);
    exchange.copy(copy.data(), input.data(), kBytes);
    if (copy != input) throw std::runtime_error("other bytes");
    if (transport.moves() < kBytes / kMostBetween) throw std::runtime_error("the transport has not moved often enough");
    exchange.copy(nullptr, nullptr, 0);
    exchange.wait();
  });
  CHECK(errors == no_errors(2));
}

TEST_CASE("a direct exchange with a host that fails is an error", "[runtime][unit]") {
  const auto errors = run_hosts({{0, 1}, with_columns(1)}, [](HostChannels& channels) {
    if (channels.topology.host() == 1) throw std::runtime_error("failed before");
    char input = 1, output = 0;
    DirectExchange exchange(channels, &input, 1, &output, 1);
    exchange.receive(1, {0, 1});
    exchange.wait();
  });
  CHECK(errors[0] != "");
  CHECK(errors[1] == "failed before");
}
