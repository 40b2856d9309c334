#include "runtime/negotiation/unnamed_submissions.hpp"

#include <bit>

namespace runjob::runtime {
namespace {

/// FNV-1a over 64-bit words.
void mix(std::uint64_t& hash, std::uint64_t word) {
  hash = (hash ^ word) * 0x100000001B3;
  hash ^= hash >> 32;  // the multiplication carries nothing downwards
}

void mix(std::uint64_t& hash, ShapeView shape, bool has_own_rows) {
  mix(hash, shape.size());
  for (std::size_t i = has_own_rows ? 1 : 0; i < shape.size(); ++i) mix(hash, static_cast<std::uint64_t>(shape[i]));
}

template <class Number>
void append_bytes(std::string& bytes, Number number) {
  for (std::size_t i = 0; i < sizeof number; ++i) bytes += static_cast<char>(number >> (8 * i) & 0xFF);
}

std::string key_of(std::uint64_t description, std::uint32_t count) {
  std::string key(kUnnamed);
  append_bytes(key, description);
  append_bytes(key, static_cast<std::uint16_t>(count));
  return key;
}

}  // namespace

template <class Extents>
std::uint64_t UnnamedSubmissions::hash_of(const BasicSignature<Extents>& signature) {
  constexpr std::uint64_t kNoWire = 0xFF;
  const bool has_own_rows = has_own_first_extent(signature.kind);
  std::uint64_t hash = 0xCBF29CE484222325;
  mix(hash, static_cast<std::uint64_t>(signature.kind) | static_cast<std::uint64_t>(signature.dtype) << 8 |
                static_cast<std::uint64_t>(signature.op) << 16 | static_cast<std::uint64_t>(signature.memory) << 24 |
                static_cast<std::uint64_t>(static_cast<std::uint32_t>(signature.root)) << 32);
  mix(hash, static_cast<std::uint64_t>(static_cast<std::uint32_t>(signature.process_set)) << 8 |
                (signature.wire ? static_cast<std::uint64_t>(*signature.wire) : kNoWire));
  mix(hash, std::bit_cast<std::uint64_t>(signature.prescale));
  mix(hash, std::bit_cast<std::uint64_t>(signature.postscale));
  mix(hash, signature.shape, has_own_rows);
  mix(hash, signature.group.size());
  for (const GroupTensor& tensor : signature.group) {
    mix(hash, static_cast<std::uint64_t>(tensor.dtype));
    mix(hash, tensor.shape, has_own_rows);
  }
  return hash;
}
template std::uint64_t UnnamedSubmissions::hash_of(const Signature& signature);
template std::uint64_t UnnamedSubmissions::hash_of(const SignatureView& signature);

UnnamedSubmissions::Next UnnamedSubmissions::next(int process_set, std::uint64_t description) {
  OfSet& set = sets_[process_set];
  return {unnamed_operation(process_set, ++set.count), key_of(description, set.step.next(description))};
}

std::optional<std::string> UnnamedSubmissions::expected_key(int process_set, std::uint64_t description) const {
  const auto found = sets_.find(process_set);
  if (found == sets_.end()) return std::nullopt;
  const std::optional<std::uint32_t> count = found->second.step.expected(description);
  return count ? std::optional(key_of(description, *count)) : std::nullopt;
}

std::uint64_t UnnamedSubmissions::count(int process_set) const {
  const auto found = sets_.find(process_set);
  return found == sets_.end() ? 0 : found->second.count;
}

}  // namespace runjob::runtime
