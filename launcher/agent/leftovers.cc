#include "launcher/agent/leftovers.hpp"

#include <fstream>
#include <iterator>
#include <signal.h>
#include <string>

#include <fmt/format.h>

#include "launcher/processes/process_handle.hpp"
#include "launcher/processes/process_tree.hpp"

namespace runjob {

void kill_leftovers(int number) {
  const std::string wanted = fmt::format("\nRUNJOB_PROCESS_NUMBER={}\n", number);
  for (const Descendant& process : descendants("runjob-guard")) {
    const ProcessHandle handle(process.pid);  // before its environment is read: the number may be given to another one
    std::ifstream file(fmt::format("/proc/{}/environ", process.pid), std::ios::binary);
    std::string environment(std::istreambuf_iterator<char>(file), {});
    for (char& each : environment) {
      if (each == '\0') each = '\n';
    }
    if (("\n" + environment).find(wanted) != std::string::npos) handle.signal(SIGKILL);
  }
}

}  // namespace runjob
