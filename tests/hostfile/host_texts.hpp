#pragma once

#include <string>
#include <vector>

#include "hostfile/allocation.hpp"

namespace runjob {

/// "s1:4 s2:1".
inline std::string text_of(const std::vector<Host>& hosts) {
  std::string text;
  for (const Host& host : hosts) text += (text.empty() ? "" : " ") + host.name + ":" + std::to_string(host.slots);
  return text;
}

}  // namespace runjob
