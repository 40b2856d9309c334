#include "runtime/messages/message_frame.hpp"

#include <fmt/format.h>

#include "base/error.hpp"

namespace runjob::runtime {
namespace {

/// More than any memory.
constexpr std::uint64_t kMostBytes = std::uint64_t{1} << 48;

std::size_t checked(std::uint64_t bytes, std::uint64_t most) {
  if (bytes <= most) return bytes;
  throw Error(Errc::kProtocol, fmt::format("a frame of {} bytes, where {} are allowed", bytes, most));
}

}  // namespace

std::size_t payload_of(const Frame& frame) {
  switch (frame.type) {
    case FrameType::kEager:
      return checked(frame.bytes, kMostEagerBytes);
    case FrameType::kData:
      return checked(frame.bytes, kMostBytes);
    case FrameType::kWithdrawn:
    case FrameType::kGoodbye:
      return checked(frame.bytes, kMostTextBytes);
    case FrameType::kAsk:
      checked(frame.bytes, kMostBytes);
      return 0;
    case FrameType::kToken:
    case FrameType::kGrant:
    case FrameType::kRead:
    case FrameType::kRefused:
    case FrameType::kCredit:
      return 0;
  }
  throw Error(Errc::kProtocol, fmt::format("a frame of the unknown type {}", static_cast<std::uint32_t>(frame.type)));
}

}  // namespace runjob::runtime
