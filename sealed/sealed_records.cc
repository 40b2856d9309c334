#include "sealed/sealed_records.hpp"

#include <algorithm>

#include "base/error.hpp"
#include "sealed/aead.hpp"

namespace runjob {
namespace {

constexpr std::size_t kLengthBytes = 2;
constexpr std::size_t kMostPlainBytes = kMostRecordBytes - kSealBytes;

std::size_t length_at(std::string_view bytes) {
  return (static_cast<std::size_t>(static_cast<unsigned char>(bytes[0])) << 8) | static_cast<unsigned char>(bytes[1]);
}

}  // namespace

void Sealer::seal(std::string_view plain, std::string& out) {
  do {
    const std::string_view piece = plain.substr(0, kMostPlainBytes);
    const std::size_t length = piece.size() + kSealBytes;
    out += static_cast<char>(length >> 8);
    out += static_cast<char>(length & 0xff);
    runjob::seal(key_, counter_++, "", piece, out);
    plain.remove_prefix(piece.size());
  } while (!plain.empty());
}

void Opener::feed(std::string_view bytes, std::string& out) {
  if (!partial_.empty()) {  // only as much as completes it, so that large reads are not copied
    while (!bytes.empty()) {
      const std::size_t wanted = partial_.size() < kLengthBytes ? kLengthBytes : kLengthBytes + length_at(partial_);
      if (partial_.size() == wanted) break;
      const std::string_view piece = bytes.substr(0, wanted - partial_.size());
      partial_ += piece;
      bytes.remove_prefix(piece.size());
    }
    std::string_view whole = partial_;
    open_all(whole, out);
    partial_.erase(0, partial_.size() - whole.size());
  }
  open_all(bytes, out);
  partial_ += bytes;
}

/// Leaves what is no whole record in `bytes`.
void Opener::open_all(std::string_view& bytes, std::string& out) {
  while (bytes.size() >= kLengthBytes) {
    const std::size_t length = length_at(bytes);
    if (bytes.size() < kLengthBytes + length) return;
    if (!open(key_, counter_, "", bytes.substr(kLengthBytes, length), out))
      throw Error(Errc::kAuth, "bytes on the connection that the other side has not sealed with the job's key");
    ++counter_;
    bytes.remove_prefix(kLengthBytes + length);
  }
}

}  // namespace runjob
