#pragma once

#include <string>
#include <vector>

#include "runtime/collectives/hierarchical/rounds/message_block.hpp"

namespace runjob::runtime {

/// A block as it is sent, in one piece.
inline std::string whole_block(const std::vector<RoundMessage>& messages, bool with_ages = false) {
  LentBlock block = encode_block(messages, with_ages);
  return block.text.append(block.data);
}

}  // namespace runjob::runtime
