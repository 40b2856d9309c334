#include "launcher/agent/run_agent.hpp"

/// runjob-agent: started by the launcher on other hosts, never by a user.
int main() {
  return runjob::run_agent(runjob::Neighbours::kSome);
}
