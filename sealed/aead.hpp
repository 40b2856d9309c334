#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

namespace runjob {

/// ChaCha20-Poly1305 (RFC 8439) with Noise's nonce: four zero bytes, then the counter, little-endian.
inline constexpr std::size_t kSealBytes = 16;  ///< a sealed text is longer by this

/// Appends the sealed `plain` to `out`. A counter must not be used twice with one key.
void seal(const std::array<unsigned char, 32>& key, std::uint64_t counter, std::string_view associated,
          std::string_view plain, std::string& out);

/// Appends the plain text to `out`. Returns false, and leaves `out` unchanged, if any part of the sealed text was
/// changed.
[[nodiscard]] bool open(const std::array<unsigned char, 32>& key, std::uint64_t counter, std::string_view associated,
                        std::string_view sealed, std::string& out);

}  // namespace runjob
