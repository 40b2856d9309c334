#include "runtime/collectives/address_set.hpp"

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/json_text.hpp"
#include "runtime/collectives/json_bytes.hpp"

namespace runjob::runtime {

using nlohmann::json;

std::string join_addresses(const std::vector<std::string>& addresses) {
  json parts = json::array();
  for (const std::string& address : addresses) parts.push_back(to_binary(address));
  return cbor_bytes(parts);
}

std::vector<std::string> split_addresses(const std::string& address, std::size_t count, std::size_t rank) {
  std::vector<std::string> addresses;
  try {
    const json document = parse_cbor(address);
    for (const json& part : document.get_ref<const json::array_t&>()) addresses.push_back(from_binary(part));
  } catch (const json::exception& error) {
    throw Error(Errc::kProtocol,
                fmt::format("rank {} has sent a malformed address of its backends: {}", rank, error.what()));
  }
  if (addresses.size() == count) return addresses;
  throw Error(Errc::kProtocol, fmt::format("rank {} has {} backends, this rank has {}: all ranks need the same", rank,
                                           addresses.size(), count));
}

}  // namespace runjob::runtime
