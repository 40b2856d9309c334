#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

/// The messages of a host's ranks in one round, as its leader sends them to other hosts: one after the other, with their lengths.
/// A message that is the same as the one before it, as numbers of operations are, is four bytes. Pure.
namespace runjob::runtime {

struct RoundMessage {
  std::uint32_t tag = 0;
  std::span<const std::byte> bytes = {};
};

std::string encode_block(const std::vector<RoundMessage>& messages);

/// Takes a block of `count` messages off the beginning of `bytes`, and hands each to `put`. `bytes` stays the owner of what is
/// handed over. Errors  Error(kProtocol) for a message above `most_bytes` or a block that is cut off.
void take_block(std::string_view& bytes, std::size_t count, std::size_t most_bytes,
                const std::function<void(std::size_t index, const RoundMessage& message)>& put);

}  // namespace runjob::runtime
