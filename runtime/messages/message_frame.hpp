#pragma once

#include <cstddef>
#include <cstdint>

/// The protocol of messages between two ranks. Each frame is a header of fixed size; some have bytes behind it.
///
///   kToken      both, first, if they are on one host: where the other one can read a number, to find out if it may
///   kEager      sender    a short message, and its bytes; sent without waiting for the receiver
///   kAsk        sender    a long message, without its bytes: where they are in the sender's memory
///   kGrant      receiver  asks for the bytes of a kAsk
///   kData       sender    the bytes that were asked for
///   kRead       receiver  it has read them in the sender's memory, which it uses no more
///   kRefused    receiver  the receive has room for fewer bytes
///   kWithdrawn  sender    the message of a kAsk will not come, and why
///   kCredit     receiver  so many bytes of eager messages were taken
///   kGoodbye    both      this rank leaves the job, and why
///
/// Order    Messages are matched in the order of kEager and kAsk on the link.
/// Memory   A receiver keeps kEager frames that no receive was posted for: at most kMostUntaken bytes of each sender,
///          which counts them. Above that it sends kAsk. A kAsk without a receive costs the receiver an entry.
namespace runjob::runtime {

enum class FrameType : std::uint32_t {
  kToken = 1,
  kEager,
  kAsk,
  kGrant,
  kData,
  kRead,
  kRefused,
  kWithdrawn,
  kCredit,
  kGoodbye,
};

/// The header of a frame. Fields that its type does not name are zero.
struct Frame {
  FrameType type = FrameType::kToken;
  std::uint32_t unused = 0;
  std::int64_t set = 0;       ///< kEager, kAsk, kRefused: see MessageKey
  std::int64_t tag = 0;       ///< kEager, kAsk, kRefused: of the message; kToken: the number
  std::uint64_t bytes = 0;    ///< of the message or text; kRefused: the room; kCredit: how many
  std::uint64_t id = 0;       ///< of a kAsk, and of what answers it; 0 in a kRefused for a kEager; kToken: the process
  std::uint64_t address = 0;  ///< kAsk, kToken: in the sender's memory; kRefused: bytes of the message
};
static_assert(sizeof(Frame) == 48);

/// The longest message that is sent before the receiver has asked for it. Measured on one host: above it one copy by
/// the kernel and an answer cost less than two copies.
inline constexpr std::size_t kMostEagerBytes = 32u << 10;
/// For each sender, its frames included.
inline constexpr std::size_t kMostUntaken = 1u << 20;
inline constexpr std::size_t kMostTextBytes = 1000;

/// The number of bytes behind the header.
/// Errors  Error(kProtocol): no rank sends such a frame.
std::size_t payload_of(const Frame& frame);

}  // namespace runjob::runtime
