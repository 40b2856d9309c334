#include "runtime/job/bootstrap_blob.hpp"

#include <nlohmann/json.hpp>

#include "base/error.hpp"
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

BootstrapBlob decode_bootstrap_blob(const std::string& bytes) {
  try {
    const json document = parse_cbor(bytes);
    BootstrapBlob blob;
    blob.error = from_binary(document.at("error"));
    blob.mesh = from_binary(document.at("mesh"));
    blob.control = from_binary(document.at("control"));
    document.at("cache_capacity").get_to(blob.cache_capacity);
    document.at("process_sets").get_to(blob.process_sets);
    document.at("fusion_threshold").get_to(blob.fusion_threshold);
    document.at("mixes_groups").get_to(blob.mixes_groups);
    return blob;
  } catch (const json::exception& error) {
    throw Error(Errc::kProtocol, std::string("another rank's addresses are malformed: ") + error.what());
  }
}

}  // namespace runjob::runtime
