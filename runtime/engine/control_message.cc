#include "runtime/engine/control_message.hpp"

#include <bit>
#include <cstring>
#include <type_traits>

#include "base/error.hpp"

namespace runjob::runtime {
namespace {

/// In place of a dtype.
constexpr std::uint8_t kNoWire = 0xff;

class Writer {
 public:
  template <class T>
  void number(T value) {
    static_assert(std::endian::native == std::endian::little, "the wire format is the memory's");
    char raw[sizeof(T)];
    std::memcpy(raw, &value, sizeof(T));
    bytes_.append(raw, sizeof(T));
  }
  void text(std::string_view value) {
    number(static_cast<std::uint32_t>(value.size()));
    bytes_.append(value);
  }
  void numbers(const std::vector<std::int64_t>& values) {
    number(static_cast<std::uint32_t>(values.size()));
    for (const std::int64_t value : values) number(value);
  }
  void status(const Status& value) {
    number(static_cast<std::uint8_t>(value.code()));
    text(value.message());
  }
  std::string take() { return std::move(bytes_); }

 private:
  std::string bytes_;
};

class Reader {
 public:
  explicit Reader(std::string_view bytes) : bytes_(bytes) {}

  template <class T>
  T number() {
    T value;
    std::memcpy(&value, take(sizeof(T)).data(), sizeof(T));
    return value;
  }
  /// An enum written as one byte; `last` is its greatest value.
  template <class E>
  E choice(E last) {
    const auto value = number<std::uint8_t>();
    if (value > static_cast<std::uint8_t>(last)) refuse();
    return static_cast<E>(value);
  }
  std::string text() { return std::string(take(number<std::uint32_t>())); }
  std::vector<std::int64_t> numbers() {
    std::vector<std::int64_t> values(count(sizeof(std::int64_t)));
    for (std::int64_t& value : values) value = number<std::int64_t>();
    return values;
  }
  Status status() {
    const Errc code = choice(Errc::kBug);
    return Status(code, text());
  }
  /// The length of a list whose items take at least `item_bytes` each.
  std::size_t count(std::size_t item_bytes) {
    const auto value = number<std::uint32_t>();
    if (value > bytes_.size() / item_bytes) refuse();
    return value;
  }
  void end() const {
    if (!bytes_.empty()) refuse();
  }
  [[noreturn]] static void refuse() { throw Error(Errc::kProtocol, "a control message between ranks is malformed"); }

 private:
  std::string_view take(std::size_t size) {
    if (size > bytes_.size()) refuse();
    const std::string_view result = bytes_.substr(0, size);
    bytes_.remove_prefix(size);
    return result;
  }

  std::string_view bytes_;
};

void write_signature(Writer& writer, const Signature& signature) {
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
  writer.number(static_cast<std::uint32_t>(signature.group.size()));
  for (const GroupTensor& tensor : signature.group) {
    writer.number(static_cast<std::uint8_t>(tensor.dtype));
    writer.numbers(tensor.shape);
  }
}

void write_request(Writer& writer, const Request& request) {
  writer.text(request.name);
  write_signature(writer, request.signature);
}

/// Some kinds divide what they move by rows.
void check_rows(const Signature& signature) {
  if (!has_own_first_extent(signature.kind) && signature.kind != Kind::kReducescatter) return;
  for (std::size_t tensor = 0; tensor < tensor_count(signature); ++tensor) {
    if ((signature.group.empty() ? signature.shape : signature.group[tensor].shape).empty()) Reader::refuse();
  }
}

Signature read_signature(Reader& reader) {
  Signature signature;
  signature.kind = reader.choice(Kind::kReducescatter);
  if (!is_kind(static_cast<int>(signature.kind))) Reader::refuse();
  signature.dtype = reader.choice(DType::kBfloat16);
  signature.op = reader.choice(ReduceOp::kProduct);
  signature.root = reader.number<std::int32_t>();
  signature.process_set = reader.number<std::int32_t>();
  signature.prescale = reader.number<double>();
  signature.postscale = reader.number<double>();
  signature.shape = reader.numbers();
  signature.splits = reader.numbers();
  if (const auto wire = reader.number<std::uint8_t>(); wire != kNoWire) {
    if (!is_dtype(wire)) Reader::refuse();
    signature.wire = static_cast<DType>(wire);
  }
  signature.group.resize(reader.count(5));  // a scalar's dtype and shape
  for (GroupTensor& tensor : signature.group) {
    tensor.dtype = reader.choice(DType::kBfloat16);
    tensor.shape = reader.numbers();
  }
  check_rows(signature);
  return signature;
}

Request read_request(Reader& reader) {
  Request request;
  request.name = reader.text();
  request.signature = read_signature(reader);
  return request;
}

}  // namespace

std::string encode(const RankMessage& message) {
  Writer writer;
  writer.number(static_cast<std::uint8_t>(message.type));
  writer.number(static_cast<std::uint32_t>(message.requests.size()));
  for (const Request& request : message.requests) write_request(writer, request);
  writer.status(message.status);
  writer.number(message.asked);
  writer.text(message.trace);
  return writer.take();
}

std::string encode(const std::vector<Decision>& decisions) {
  Writer writer;
  writer.number(static_cast<std::uint32_t>(decisions.size()));
  for (const Decision& decision : decisions) {
    writer.number(static_cast<std::uint8_t>(decision.type));
    writer.text(decision.name);
    writer.numbers(decision.first_extents);
    writer.number(static_cast<std::uint8_t>(decision.for_joined ? 1 : 0));
    if (decision.for_joined) write_signature(writer, *decision.for_joined);
    writer.status(decision.status);
  }
  return writer.take();
}

RankMessage decode_rank_message(std::string_view bytes) {
  Reader reader(bytes);
  RankMessage message;
  message.type = reader.choice(RankMessage::Type::kSetFailed);
  const std::size_t count = reader.count(44);  // a request with an empty name, shape, splits and group
  for (std::size_t i = 0; i < count; ++i) message.requests.push_back(read_request(reader));
  message.status = reader.status();
  message.asked = reader.number<std::int64_t>();
  message.trace = reader.text();
  reader.end();
  return message;
}

std::vector<Decision> decode_decisions(std::string_view bytes) {
  Reader reader(bytes);
  std::vector<Decision> decisions(reader.count(15));  // a decision with empty texts and no extents
  for (Decision& decision : decisions) {
    decision.type = reader.choice(Decision::Type::kClock);
    decision.name = reader.text();
    decision.first_extents = reader.numbers();
    if (reader.number<std::uint8_t>() != 0) decision.for_joined = std::make_shared<Signature>(read_signature(reader));
    decision.status = reader.status();
  }
  reader.end();
  return decisions;
}

}  // namespace runjob::runtime
