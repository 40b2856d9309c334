#include "runtime/negotiation/control_message.hpp"

#include "runtime/control/wire_format.hpp"

namespace runjob::runtime {
namespace {

/// In place of a dtype.
constexpr std::uint8_t kNoWire = 0xff;

void write_signature(WireWriter& writer, const Signature& signature) {
  writer.number(static_cast<std::uint8_t>(signature.kind));
  writer.number(static_cast<std::uint8_t>(signature.dtype));
  writer.number(static_cast<std::uint8_t>(signature.op));
  writer.number(signature.root);
  writer.number(signature.process_set);
  writer.number(signature.prescale);
  writer.number(signature.postscale);
  writer.numbers(signature.shape);
  writer.numbers(signature.splits);
  writer.number(signature.wire ? static_cast<std::uint8_t>(*signature.wire) : kNoWire);
  writer.number(static_cast<std::uint8_t>(signature.memory));
  writer.number(static_cast<std::uint32_t>(signature.group.size()));
  for (const GroupTensor& tensor : signature.group) {
    writer.number(static_cast<std::uint8_t>(tensor.dtype));
    writer.numbers(tensor.shape);
  }
  writer.status(signature.obstacle);
}

/// Some kinds divide their tensors by rows, so that there must be a first dimension.
void check_rows(const Signature& signature) {
  if (!has_own_first_extent(signature.kind) && signature.kind != Kind::kReducescatter) return;
  for (std::size_t tensor = 0; tensor < tensor_count(signature); ++tensor) {
    if ((signature.group.empty() ? signature.shape : signature.group[tensor].shape).empty()) WireReader::refuse();
  }
}

Signature read_signature(WireReader& reader) {
  Signature signature;
  signature.kind = reader.choice(Kind::kReducescatter);
  if (!is_kind(static_cast<int>(signature.kind))) WireReader::refuse();
  signature.dtype = reader.choice(kLastDType);
  signature.op = reader.choice(ReduceOp::kProduct);
  signature.root = reader.number<std::int32_t>();
  signature.process_set = reader.number<std::int32_t>();
  signature.prescale = reader.number<double>();
  signature.postscale = reader.number<double>();
  signature.shape = reader.numbers();
  signature.splits = reader.numbers();
  if (const auto wire = reader.number<std::uint8_t>(); wire != kNoWire) {
    if (!is_dtype(wire)) WireReader::refuse();
    signature.wire = static_cast<DType>(wire);
  }
  signature.memory = reader.choice(MemoryKind::kDevice);
  signature.group.resize(reader.count(5));  // a scalar's dtype and shape
  for (GroupTensor& tensor : signature.group) {
    tensor.dtype = reader.choice(kLastDType);
    tensor.shape = reader.numbers();
  }
  signature.obstacle = reader.status();
  check_rows(signature);
  return signature;
}

}  // namespace

std::string encode(const Request& request) {
  WireWriter writer;
  writer.text(request.name);
  write_signature(writer, request.signature);
  return writer.take();
}

std::string encode(const Decision& decision) {
  WireWriter writer;
  writer.choice(decision.type);
  writer.text(decision.name);
  writer.numbers(decision.first_extents);
  writer.number(static_cast<std::uint8_t>(decision.for_joined ? 1 : 0));
  if (decision.for_joined) write_signature(writer, *decision.for_joined);
  writer.status(decision.status);
  return writer.take();
}

Request decode_request(std::string_view bytes) {
  WireReader reader(bytes);
  Request request;
  request.name = reader.text();
  request.signature = read_signature(reader);
  reader.end();
  return request;
}

}  // namespace runjob::runtime
