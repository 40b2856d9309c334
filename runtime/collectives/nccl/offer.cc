#include "runtime/collectives/nccl/offer.hpp"

#include <algorithm>
#include <charconv>

#include <fmt/format.h>

#include "base/codec/message_codec.hpp"
#include "base/error.hpp"
#include "runtime/collectives/nccl/nccl_library.hpp"

namespace runjob::runtime::cuda {

nlohmann::json to_document(const Vendor* const& vendor) {
  return vendor->name;
}

void from_document(const nlohmann::json& value, const Vendor*& vendor) {
  const auto name = value.get<std::string>();
  const auto* const found =
      std::find_if(std::begin(kVendors), std::end(kVendors), [&](const Vendor* known) { return known->name == name; });
  if (found == std::end(kVendors))
    throw Error(Errc::kProtocol, fmt::format("'{}' is no vendor of GPUs that runjob knows", name));
  vendor = *found;
}

}  // namespace runjob::runtime::cuda

namespace runjob::runtime::nccl {
namespace {

constexpr std::size_t kLengthBytes = 8;  // before the document, as decimal digits

std::string library_text(const Offer& offer) {
  return fmt::format("rank {} has NCCL {} ({})", offer.rank, version_text(offer.nccl), offer.path);
}

}  // namespace

void fields(auto& io, Is<Offer> auto& m) {
  io("rank", m.rank);
  io("host", m.host);
  io("host_id", m.host_id);
  io("gpu", m.gpu);
  io("vendor", m.vendor);
  io("nccl", m.nccl);
  io("path", m.path);
  io("shares_ranks", m.shares_ranks);
  io("may_share", m.may_share);
  io("must_encrypt", m.must_encrypt);
  io("id", m.id);
  io("error", m.error);
}

std::string encode(Offer offer) {
  constexpr std::size_t kMostText = 400, kMostHostId = 128;
  offer.host_id.resize(std::min(offer.host_id.size(), kMostHostId));
  offer.error.resize(std::min(offer.error.size(), kMostText));
  offer.path = offer.path.substr(offer.path.size() - std::min(offer.path.size(), kMostText));
  const std::string document = encode_cbor(offer);
  std::string bytes = fmt::format("{:0{}}", document.size(), kLengthBytes) + document;
  bytes.resize(kOfferBytes, '\0');
  return bytes;
}

Offer decode_offer(std::string_view bytes, int rank) {
  const std::string malformed = fmt::format("rank {} has sent a malformed offer of its GPU", rank);
  const std::string_view digits = bytes.substr(0, kLengthBytes);
  std::size_t length = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), length);
  if (error != std::errc() || digits.size() != kLengthBytes || end != digits.data() + kLengthBytes)
    throw Error(Errc::kProtocol, malformed + ": it does not begin with its length");
  auto offer = decode_cbor<Offer>(bytes.substr(kLengthBytes, length), malformed);
  if (offer.rank != rank) throw Error(Errc::kProtocol, fmt::format("{}: it is one of rank {}", malformed, offer.rank));
  return offer;
}

std::string objection(std::span<const Offer> offers) {
  for (const Offer& offer : offers) {
    if (!offer.must_encrypt) continue;
    return "--encrypt-data is given, and NCCL does not encrypt what it sends between hosts; on a network that encrypts "
           "by itself, such as a VPN, RUNJOB_NCCL_UNENCRYPTED=1 on all ranks makes NCCL send it";
  }
  for (const Offer& offer : offers) {
    if (!offer.error.empty()) return fmt::format("rank {} cannot use NCCL: {}", offer.rank, offer.error);
  }
  const Offer& first = offers.front();
  for (const Offer& offer : offers) {
    if (offer.vendor != first.vendor)
      return fmt::format("the ranks' GPUs are of different vendors: rank {} has one of {}, rank {} one of {}",
                         first.rank, first.vendor->name, offer.rank, offer.vendor->name);
    if (offer.nccl != first.nccl)
      return fmt::format("the ranks' versions of NCCL differ: {}, {}", library_text(first), library_text(offer));
  }
  for (std::size_t i = 0; i < offers.size(); ++i) {
    for (std::size_t j = 0; j < i; ++j) {
      const Offer &one = offers[i], &other = offers[j];
      if (one.gpu != other.gpu || one.host != other.host || one.host_id != other.host_id) continue;
      if (one.may_share && other.may_share && first.nccl >= first.vendor->sharing_library) continue;
      return fmt::format(
          "ranks {} and {} use one GPU, {}, which NCCL refuses; give each rank a GPU of its own{}", offers[j].rank,
          offers[i].rank, offers[i].gpu,
          first.nccl >= first.vendor->sharing_library ? ", or set NCCL_MULTI_RANK_GPU_ENABLE=1 on all ranks" : "");
    }
  }
  return {};
}

}  // namespace runjob::runtime::nccl
