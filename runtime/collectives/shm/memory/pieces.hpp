#pragma once

#include <algorithm>
#include <cstddef>

namespace runjob::runtime {

/// A contiguous range of a larger buffer, in elements or bytes.
struct Range {
  std::size_t first = 0, count = 0;
  bool operator==(const Range&) const = default;
};

/// A buffer cut into equal pieces, of which the last one may be shorter. A value; it does not know the buffer.
class Pieces {
 public:
  Pieces(std::size_t count, std::size_t most) : count_(count), most_(most) {}

  std::size_t number() const { return (count_ + most_ - 1) / most_; }
  Range operator[](std::size_t index) const {
    const std::size_t first = std::min(count_, index * most_);
    return {first, std::min(most_, count_ - first)};
  }

 private:
  std::size_t count_, most_;
};

/// The size of the pieces of a message: such that there are `wanted` of them, but not below `least` nor above `most`.
inline std::size_t piece_bytes(std::size_t bytes, std::size_t wanted, std::size_t least, std::size_t most) {
  constexpr std::size_t kPage = 4096;
  const std::size_t piece = (bytes / wanted + kPage - 1) / kPage * kPage;
  return std::clamp(piece, std::min(least, most), most);
}

/// The part of `count` elements that `rank` reduces. Parts consist of whole cache lines, so that no two ranks write to
/// the same line; some may be empty.
inline Range part_of(std::size_t count, std::size_t element_bytes, int rank, int size) {
  constexpr std::size_t kCacheLine = 64;
  const std::size_t line = kCacheLine / element_bytes, ranks = static_cast<std::size_t>(size);
  const std::size_t each = ((count + ranks - 1) / ranks + line - 1) / line * line;
  return Pieces(count, each)[static_cast<std::size_t>(rank)];
}

}  // namespace runjob::runtime
