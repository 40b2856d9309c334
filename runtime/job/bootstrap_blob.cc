#include "runtime/job/bootstrap_blob.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/error.hpp"
#include "base/json_integer.hpp"
#include "base/json_text.hpp"
#include "runtime/collectives/json_bytes.hpp"

namespace runjob::runtime {
namespace {

using nlohmann::json;

}  // namespace

std::string encode(const BootstrapBlob& blob) {
  const json document = {{"error", to_binary(blob.error)},
                         {"mesh", to_binary(blob.mesh)},
                         {"control", to_binary(blob.control)},
                         {"cache_capacity", blob.cache_capacity},
                         {"fusion_threshold", blob.fusion_threshold},
                         {"mixes_groups", blob.mixes_groups},
                         {"process_sets", blob.process_sets}};
  return cbor_bytes(document);
}

BootstrapBlob decode_bootstrap_blob(const std::string& bytes, const std::string& whose) {
  try {
    const json document = parse_cbor(bytes);
    BootstrapBlob blob;
    blob.error = from_binary(document.at("error"));
    blob.mesh = from_binary(document.at("mesh"));
    blob.control = from_binary(document.at("control"));
    blob.cache_capacity = json_integer<std::uint32_t>(document.at("cache_capacity"));
    document.at("process_sets").get_to(blob.process_sets);
    blob.fusion_threshold = json_integer<std::uint64_t>(document.at("fusion_threshold"));
    document.at("mixes_groups").get_to(blob.mixes_groups);
    return blob;
  } catch (const json::exception& error) {
    throw Error(Errc::kProtocol, fmt::format("{} has sent malformed addresses: {}", whose, error.what()));
  }
}

}  // namespace runjob::runtime
