#include "hostfile/merge_hosts.hpp"

#include <algorithm>
#include <cstdint>

#include <fmt/format.h>

namespace runjob {
namespace {

/// Host names are the same in any case (RFC 4343), user names are not. No part can hold a '/'.
std::string key_of(const Host& host) {
  std::string name = host.name;
  for (char& c : name) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return fmt::format("{}/{}/{}", name, host.user, host.port.value_or(0));
}

}  // namespace

bool is_same_host(const Host& one, const Host& other) {
  return key_of(one) == key_of(other);
}

std::string HostMerger::add(const Host& host) {
  ++mentions_;
  const auto [entry, is_new] = index_.try_emplace(key_of(host), hosts_.size());
  if (is_new) {
    hosts_.push_back(host);
    return "";
  }
  Host& first = hosts_[entry->second];
  const std::int64_t slots = std::int64_t{first.slots} + host.slots;
  if (slots > kMaxSlots)
    return fmt::format("host {} is named again and now has {} slots; at most {} are allowed", host.name, slots,
                       kMaxSlots);
  if (first.gpus.has_value() != host.gpus.has_value())
    return fmt::format("host {} is named twice, once with gpus= and once without; give both or neither", host.name);
  if (!first.identity.empty() && !host.identity.empty() && first.identity != host.identity)
    return fmt::format("host {} is named twice with different identity files ({} and {}); keep one", host.name,
                       first.identity, host.identity);
  first.slots = static_cast<int>(slots);
  if (first.identity.empty()) first.identity = host.identity;
  if (host.gpus) {
    for (const int gpu : *host.gpus) {
      if (std::find(first.gpus->begin(), first.gpus->end(), gpu) == first.gpus->end()) first.gpus->push_back(gpu);
    }
  }
  return "";
}

}  // namespace runjob
