#include "runtime/collectives/shm/memory/sharing.hpp"

#include <cerrno>
#include <fstream>
#include <iterator>
#include <sstream>
#include <string_view>
#include <sys/stat.h>
#include <unistd.h>

#include <fmt/format.h>

#include "base/codec/message_codec.hpp"
#include "base/error.hpp"

namespace runjob::runtime {
namespace {

/// The beginning of an offer. No socket address, and so no other backend's address, begins like this.
constexpr std::string_view kMark = "runjob shared memory 3\n";

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

/// Why processes in these places cannot share memory; "" when they can. A user without a name outside of its user
/// namespace proves itself by the token.
const char* distance_between(const SharingPlace& one, const SharingPlace& other) {
  if (one.kernel != other.kernel) return "on another kernel";
  if (!one.user.empty() && !other.user.empty() && one.user != other.user) return "of another user";
  if (one.files != other.files && one.network != other.network) return "in another container and network";
  return "";
}

}  // namespace

std::string user_outside(std::uint32_t user, const std::string& uid_map) {
  std::istringstream lines(uid_map);
  for (std::uint64_t inside = 0, outside = 0, count = 0; lines >> inside >> outside >> count;) {
    if (user >= inside && user - inside < count) return std::to_string(outside + (user - inside));
  }
  return "";
}

SharingPlace this_place() {
  std::ifstream map("/proc/self/uid_map");
  const std::string uid_map{std::istreambuf_iterator<char>(map), {}};
  return {boot_id(), fmt::format("{} {}", identity_of("/proc/self/ns/mnt"), identity_of("/")),
          identity_of("/proc/self/ns/net"), user_outside(::geteuid(), uid_map)};
}

const std::string& socket_for(const SharingPlace& here, const SharingOffer& of_owner) {
  return here.files == of_owner.place.files ? of_owner.path : of_owner.name;
}

void fields(auto& io, Is<SharingOffer> auto& m) {
  io("refusal", m.refusal);
  io("kernel", m.place.kernel);
  io("files", m.place.files);
  io("network", m.place.network);
  io("user", m.place.user);
  io("processors", m.processors);
  io("path", m.path);
  io("name", m.name);
  io("token", m.token);
}

std::string encode(const SharingOffer& offer) {
  return std::string(kMark) + encode_cbor(offer);
}

SharingOffer decode_sharing_offer(const std::string& address, int rank) {
  if (!is_sharing_offer(address))
    throw Error(Errc::kProtocol, fmt::format("the address of rank {} is not one of shared memory", rank));
  return decode_cbor<SharingOffer>(std::string_view(address).substr(kMark.size()),
                                   fmt::format("the shared memory address of rank {} is malformed", rank));
}

bool is_sharing_offer(const std::string& address) {
  return address.starts_with(kMark);
}

std::optional<std::string> objection_to_sharing(const std::vector<std::string>& addresses,
                                                const std::vector<int>& ranks) {
  SharingPlace first;
  const int first_rank = ranks.empty() ? 0 : ranks.front();
  for (std::size_t i = 0; i < addresses.size(); ++i) {
    const int rank = ranks.empty() ? static_cast<int>(i) : ranks[i];
    if (!is_sharing_offer(addresses[i])) return fmt::format("rank {} has it switched off", rank);
    const SharingOffer offer = decode_sharing_offer(addresses[i], rank);
    if (!offer.refusal.empty()) return fmt::format("rank {}: {}", rank, offer.refusal);
    if (i == 0) first = offer.place;
    if (const char* distance = distance_between(first, offer.place); *distance != '\0')
      return fmt::format("rank {} is {} than rank {}", rank, distance, first_rank);
  }
  return std::nullopt;
}

}  // namespace runjob::runtime
