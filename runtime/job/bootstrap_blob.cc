#include "runtime/job/bootstrap_blob.hpp"

#include <fmt/format.h>

#include "base/codec/message_codec.hpp"

namespace runjob::runtime {

void fields(auto& io, Is<BootstrapBlob> auto& m) {
  io("error", m.error);
  io("mesh", m.mesh);
  io("process_sets", m.process_sets);
  io("messages", m.messages);
  io("control", m.control);
  io("cache_capacity", m.cache_capacity);
  io("fusion_threshold", m.fusion_threshold);
  io("mixes_groups", m.mixes_groups);
}

std::string encode(const BootstrapBlob& blob) {
  return encode_cbor(blob);
}

BootstrapBlob decode_bootstrap_blob(const std::string& bytes, const std::string& whose) {
  return decode_cbor<BootstrapBlob>(bytes, fmt::format("{} has sent malformed addresses", whose));
}

}  // namespace runjob::runtime
