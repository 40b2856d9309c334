#include "launcher/srun_task/port_holder.hpp"

#include <fstream>
#include <sstream>
#include <string>

namespace runjob {
namespace {

constexpr unsigned kListening = 0x0a;

std::optional<uid_t> holder_in(const char* table, int port) {
  std::ifstream file(table);
  std::string line;
  std::getline(file, line);  // the names of the columns
  while (std::getline(file, line)) {
    std::istringstream fields(line);
    std::string slot, local, remote, state, queues, timer, retransmits;
    uid_t user = 0;
    if (!(fields >> slot >> local >> remote >> state >> queues >> timer >> retransmits >> user)) continue;
    const std::size_t colon = local.rfind(':');
    if (colon == std::string::npos || std::stoul(state, nullptr, 16) != kListening) continue;
    if (std::stoi(local.substr(colon + 1), nullptr, 16) == port) return user;
  }
  return std::nullopt;
}

}  // namespace

std::optional<uid_t> port_holder(int port) {
  const std::optional<uid_t> holder = holder_in("/proc/net/tcp6", port);
  return holder ? holder : holder_in("/proc/net/tcp", port);
}

}  // namespace runjob
