#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

/// The messages of a host's ranks in one round, as its leader sends them to other hosts: one after the other, with
/// their lengths. A message that is the same as the one before it, as numbers of operations are, takes four bytes.
/// While rank 0 records a timeline, a block also has the messages' ages. Pure.
namespace runjob::runtime {

/// A message: `bytes`, then `unread` bytes that no other rank reads and that are not sent, then `rest`. Without an
/// unread part all of it is in `bytes`.
struct RoundMessage {
  std::uint32_t tag = 0;
  std::span<const std::byte> bytes = {};
  std::uint32_t age_us = 0;  ///< the time since the rank gave it, in microseconds, when the block was sent
  std::size_t unread = 0;
  std::span<const std::byte> rest = {};

  std::size_t size() const { return bytes.size() + unread + rest.size(); }
};

/// True for a message that is not copied where that can be avoided: a copy of a short one, or of one with an unread
/// part, was faster (docs/developers/measurements.md).
inline bool is_lent(const RoundMessage& message) {
  constexpr std::size_t kLeastBytes = 4096;
  return message.unread == 0 && message.bytes.size() >= kLeastBytes;
}

/// A block whose end is no copy: `data` follow `text`, and belong to the owner of the last message.
struct LentBlock {
  std::string text;
  std::string_view data = {};
};
/// Returns the block. The bytes of the last message are lent if is_lent() of it. `memory`: a string whose memory is
/// used again.
LentBlock encode_block(const std::vector<RoundMessage>& messages, bool with_ages = false, std::string memory = {});
/// The age at the time `now_ns` of a message from the time `then_ns`, on one clock.
std::uint32_t age_us(std::int64_t then_ns, std::int64_t now_ns);
/// True if the block at the beginning of `bytes` has ages.
bool has_ages(std::string_view bytes);
/// Adds `age_us` to the ages of the block of `count` messages that begins at `block`, if it has any.
void add_age(char* block, std::size_t count, std::uint32_t age_us);

/// Takes a block of `count` messages off the beginning of `bytes`, and passes each to `put`. The messages lie in the
/// bytes that the caller owns. Returns true if the block has ages.
/// Errors  Error(kProtocol) for a message above `most_bytes` or a block that is cut off.
bool take_block(std::string_view& bytes, std::size_t count, std::size_t most_bytes,
                const std::function<void(std::size_t index, const RoundMessage& message)>& put);

}  // namespace runjob::runtime
