#include "runtime/collectives/nccl/offer.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/error.hpp"
#include "base/json_integer.hpp"
#include "base/json_text.hpp"
#include "runtime/collectives/json_bytes.hpp"
#include "runtime/collectives/nccl/nccl_library.hpp"

namespace runjob::runtime::nccl {
namespace {

using nlohmann::json;

std::string library_text(const Offer& offer) {
  return fmt::format("rank {} has NCCL {} ({})", offer.rank, version_text(offer.nccl), offer.path);
}

/// Errors  Error(kProtocol).
const cuda::Vendor* vendor_of(const std::string& name) {
  for (const cuda::Vendor* vendor : cuda::kVendors) {
    if (vendor->name == name) return vendor;
  }
  throw Error(Errc::kProtocol, fmt::format("'{}' is no vendor of GPUs that runjob knows", name));
}

}  // namespace

std::string encode(Offer offer) {
  constexpr std::size_t kMostText = 400, kMostHostId = 128;
  offer.host_id.resize(std::min(offer.host_id.size(), kMostHostId));
  offer.error.resize(std::min(offer.error.size(), kMostText));
  offer.path = offer.path.substr(offer.path.size() - std::min(offer.path.size(), kMostText));
  std::string bytes = cbor_bytes({{"rank", offer.rank},
                                  {"host", offer.host},
                                  {"host_id", to_binary(offer.host_id)},
                                  {"gpu", to_binary(offer.gpu)},
                                  {"vendor", offer.vendor->name},
                                  {"nccl", offer.nccl},
                                  {"path", to_binary(offer.path)},
                                  {"shares_ranks", offer.shares_ranks},
                                  {"may_share", offer.may_share},
                                  {"must_encrypt", offer.must_encrypt},
                                  {"id", to_binary(offer.id)},
                                  {"error", to_binary(offer.error)}});
  const std::string length = fmt::format("{:08}", bytes.size());
  bytes = length + bytes;
  bytes.resize(kOfferBytes, '\0');
  return bytes;
}

Offer decode_offer(std::string_view bytes, int rank) {
  constexpr std::size_t kLengthBytes = 8;
  try {
    const std::size_t length = std::stoul(std::string(bytes.substr(0, kLengthBytes)));
    const json fields = parse_cbor(std::string(bytes.substr(kLengthBytes, length)));
    Offer offer;
    offer.rank = json_integer<int>(fields.at("rank"));
    if (offer.rank != rank) throw Error(Errc::kProtocol, fmt::format("it is one of rank {}", offer.rank));
    offer.host = json_integer<int>(fields.at("host"));
    offer.host_id = from_binary(fields.at("host_id"));
    offer.gpu = from_binary(fields.at("gpu"));
    offer.vendor = vendor_of(fields.at("vendor").get<std::string>());
    offer.nccl = json_integer<int>(fields.at("nccl"));
    offer.path = from_binary(fields.at("path"));
    offer.shares_ranks = fields.at("shares_ranks");
    offer.may_share = fields.at("may_share");
    offer.must_encrypt = fields.at("must_encrypt");
    offer.id = from_binary(fields.at("id"));
    offer.error = from_binary(fields.at("error"));
    return offer;
  } catch (const std::exception& error) {
    throw Error(Errc::kProtocol, fmt::format("rank {} has sent a malformed offer of its GPU: {}", rank, error.what()));
  }
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
