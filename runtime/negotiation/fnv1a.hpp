#pragma once

#include <cstdint>
#include <string_view>

namespace runjob::runtime {

/// The 64-bit FNV-1a hash of `bytes`: the same on every machine and in every build, unlike std::hash.
/// Source  Fowler, Noll, Vo and Eastlake, RFC 9923, "The FNV Non-Cryptographic Hash Algorithm".
constexpr std::uint64_t fnv1a(std::string_view bytes) {
  std::uint64_t hash = 0xCBF29CE484222325;
  for (const char byte : bytes) hash = (hash ^ static_cast<unsigned char>(byte)) * 0x100000001B3;
  return hash;
}

}  // namespace runjob::runtime
