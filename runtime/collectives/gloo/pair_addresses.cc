#include "runtime/collectives/gloo/pair_addresses.hpp"

#include <cstdint>
#include <cstring>
#include <stdexcept>

namespace runjob::runtime {
namespace {

struct Head {
  std::int32_t peer;
  std::uint16_t bytes;
  std::uint16_t way;
};

}  // namespace

std::string encode(const PairAddresses& addresses) {
  std::string bytes;
  for (const auto& [key, address] : addresses) {
    const Head head{key.second, static_cast<std::uint16_t>(address.size()), static_cast<std::uint16_t>(key.first)};
    bytes.append(reinterpret_cast<const char*>(&head), sizeof head);
    bytes += address;
  }
  return bytes;
}

PairAddresses decode_pair_addresses(const std::string& bytes) {
  PairAddresses addresses;
  for (std::size_t at = 0; at < bytes.size();) {
    Head head;
    if (bytes.size() - at < sizeof head) throw std::runtime_error("a rank's Gloo addresses are cut");
    std::memcpy(&head, bytes.data() + at, sizeof head);
    at += sizeof head;
    if (bytes.size() - at < head.bytes || head.way > 1) throw std::runtime_error("a rank's Gloo addresses are cut");
    addresses[{static_cast<Way>(head.way), head.peer}] = bytes.substr(at, head.bytes);
    at += head.bytes;
  }
  return addresses;
}

}  // namespace runjob::runtime
