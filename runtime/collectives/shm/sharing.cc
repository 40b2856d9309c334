#include "runtime/collectives/shm/sharing.hpp"

#include <cerrno>
#include <fstream>
#include <sys/stat.h>
#include <unistd.h>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/error.hpp"
#include "runtime/collectives/json_bytes.hpp"

namespace runjob::runtime {
namespace {

using nlohmann::json;

/// No socket address begins like this, so other backends' addresses do not either.
constexpr std::string_view kMark = "runjob shared memory 1\n";

std::string boot_id() {
  constexpr const char* kPath = "/proc/sys/kernel/random/boot_id";
  std::string line;
  std::ifstream file(kPath);
  if (!std::getline(file, line)) throw Error(Errc::kUnavailable, fmt::format("cannot read {}", kPath));
  return line;
}

std::string identity_of(const char* path) {
  struct stat status {};
  if (::stat(path, &status) != 0) throw Error(Errc::kUnavailable, system_error(path, errno).what());
  return fmt::format("{}:{}", status.st_dev, status.st_ino);
}

}  // namespace

std::string this_host() {
  return fmt::format("{} mount {} root {} user {}", boot_id(), identity_of("/proc/self/ns/mnt"), identity_of("/"),
                     ::geteuid());
}

std::string encode(const SharingOffer& offer) {
  const json document = {{"refusal", to_binary(offer.refusal)},
                         {"host", to_binary(offer.host)},
                         {"processors", to_binary(offer.processors)},
                         {"path", to_binary(offer.path)},
                         {"token", to_binary(offer.token)}};
  std::string bytes;
  json::to_cbor(document, bytes);
  return std::string(kMark) + bytes;
}

SharingOffer decode_sharing_offer(const std::string& address) {
  if (!is_sharing_offer(address)) throw Error(Errc::kProtocol, "a rank's address is not one of shared memory");
  try {
    const json document = json::from_cbor(address.begin() + kMark.size(), address.end());
    return {from_binary(document.at("refusal")), from_binary(document.at("host")),
            from_binary(document.at("processors")), from_binary(document.at("path")),
            from_binary(document.at("token"))};
  } catch (const json::exception& error) {
    throw Error(Errc::kProtocol, fmt::format("a rank's address of shared memory is malformed: {}", error.what()));
  }
}

bool is_sharing_offer(const std::string& address) {
  return address.starts_with(kMark);
}

std::optional<std::string> objection_to_sharing(const std::vector<std::string>& addresses,
                                                const std::vector<int>& ranks) {
  std::string host;
  for (std::size_t i = 0; i < addresses.size(); ++i) {
    const int rank = ranks.empty() ? static_cast<int>(i) : ranks[i];
    if (!is_sharing_offer(addresses[i])) return fmt::format("rank {} has it switched off", rank);
    const SharingOffer offer = decode_sharing_offer(addresses[i]);
    if (!offer.refusal.empty()) return fmt::format("rank {}: {}", rank, offer.refusal);
    if (i == 0) host = offer.host;
    if (offer.host != host) {
      return fmt::format("rank {} is in another container or of another user than rank {}", rank,
                         ranks.empty() ? 0 : ranks.front());
    }
  }
  return std::nullopt;
}

}  // namespace runjob::runtime
