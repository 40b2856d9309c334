/// Feeds any bytes to the readers of ssh-agent's answers, and to that of a request to sign, which a server has a part in.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "launcher/ssh/files/agent_answer.hpp"
#include "tests/fuzz.hpp"

using namespace runjob;

void fuzz(std::string_view answer) {
  std::size_t bytes = 0;
  for (const AgentKey& key : parse_agent_keys(answer)) bytes += key.key.blob.size() + key.comment.size() + 8;
  require(bytes <= answer.size());
  const auto signature = parse_agent_signature(answer);
  require(!signature || (!signature->empty() && answer.find(*signature) != answer.npos));
  const std::uint32_t flags = agent_flags(answer);
  require(flags == 0 || flags == 2 || flags == 4);
}
