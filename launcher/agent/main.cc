#include <cstring>

#include "launcher/agent/run_agent.hpp"

/// runjob-agent: started by the launcher on other hosts, never by a user. `runjob-agent --called`: through srun.
int main(int argc, char** argv) {
  const bool called = argc > 1 && std::strcmp(argv[1], "--called") == 0;
  return called ? runjob::run_called_agent() : runjob::run_agent(runjob::Neighbours::kSome);
}
