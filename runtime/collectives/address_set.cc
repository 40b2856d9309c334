#include "runtime/collectives/address_set.hpp"

#include <fmt/format.h>

#include "base/codec/message_codec.hpp"
#include "base/error.hpp"

namespace runjob::runtime {

std::string join_addresses(const std::vector<std::string>& addresses) {
  return encode_cbor(addresses);
}

std::vector<std::string> split_addresses(const std::string& address, std::size_t count, std::size_t rank) {
  auto addresses = decode_cbor<std::vector<std::string>>(
      address, fmt::format("rank {} has sent a malformed address of its backends", rank));
  if (addresses.size() == count) return addresses;
  throw Error(Errc::kProtocol, fmt::format("rank {} has {} backends, this rank has {}: all ranks need the same", rank,
                                           addresses.size(), count));
}

}  // namespace runjob::runtime
