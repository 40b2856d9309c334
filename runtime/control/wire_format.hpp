#pragma once

#include <bit>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/error.hpp"
#include "base/status.hpp"

/// The bytes of the control messages between ranks: numbers are little-endian, a text or list has its length before it.
/// Both sides come from one build (the hello is refused otherwise), so there are no optional fields.
namespace runjob::runtime {

/// Appends values to a message.
class WireWriter {
 public:
  template <class T>
  void number(T value) {
    static_assert(std::is_arithmetic_v<T>);
    static_assert(std::endian::native == std::endian::little, "the wire format is the memory's");
    char raw[sizeof(T)];
    std::memcpy(raw, &value, sizeof(T));
    bytes_.append(raw, sizeof(T));
  }
  /// An enum whose values fit a byte.
  template <class E>
  void choice(E value) {
    number(static_cast<std::uint8_t>(value));
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
    choice(value.code());
    text(value.message());
  }
  std::string take() { return std::move(bytes_); }

 private:
  std::string bytes_;
};

/// Reads the values of a message in the order in which they were written.
/// Owner    the bytes are lent.
/// Errors   Error(kProtocol) for a message that is cut off or has a value that cannot be.
class WireReader {
 public:
  explicit WireReader(std::string_view bytes) : bytes_(bytes) {}

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
  /// To be called after the last value: refuses bytes that are left.
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

}  // namespace runjob::runtime
