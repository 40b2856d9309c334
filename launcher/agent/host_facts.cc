#include "launcher/agent/host_facts.hpp"

#include <algorithm>
#include <array>
#include <fstream>
#include <netinet/in.h>
#include <string>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/unique_handle.hpp"
#include "base/version.hpp"
#include "launcher/agent/placement/cpu_topology.hpp"
#include "launcher/network/interface_facts.hpp"

namespace runjob {
namespace {

bool can_bind(int port) {
  const UniqueFd socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<std::uint16_t>(port));
  return ::bind(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0;
}

/// The port is below the ephemeral range, so that no outgoing connection takes it before the rank's program does.
int free_port() {
  constexpr int kLowest = 10'000;
  constexpr int kAttempts = 64;
  int ephemeral = 32'768;
  std::ifstream("/proc/sys/net/ipv4/ip_local_port_range") >> ephemeral;
  const int highest = ephemeral > kLowest + 1'000 ? ephemeral - 1 : 65'535;
  std::array<std::uint32_t, kAttempts> random{};
  static_cast<void>(!::getrandom(random.data(), sizeof random, 0));
  for (const std::uint32_t number : random) {
    const int port = kLowest + static_cast<int>(number % static_cast<std::uint32_t>(highest - kLowest + 1));
    if (can_bind(port)) return port;
  }
  return 0;
}

}  // namespace

Hello host_facts(Neighbours neighbours) {
  Hello facts;
  facts.version = kVersion;
  facts.pid = ::getpid();
  char name[256] = "";
  ::gethostname(name, sizeof name - 1);
  facts.hostname = name;
  facts.cores = usable_cores();
  facts.online_cores = std::max(1, static_cast<int>(::sysconf(_SC_NPROCESSORS_ONLN)));
  facts.free_port = free_port();
  if (neighbours == Neighbours::kSome) facts.network = network_facts();
  return facts;
}

std::int64_t oom_kills() {
  std::ifstream file("/proc/vmstat");
  std::string name;
  std::int64_t count = 0;
  while (file >> name >> count) {
    if (name == "oom_kill") return count;
  }
  return 0;
}

}  // namespace runjob
