#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

/// The byte stream between the launcher and an agent. Each side sends kMagic once, then frames: a header of
/// 20 bytes, little-endian, and a raw payload.
///
///   offset 0  u32 length of the payload     4  u8 type   5  u8 stream   6  u16 zero
///          8  i32 rank, -1 when of none     12 i64 time of the source in microseconds since 1970, 0 when not
///          given
///
/// Control payloads are CBOR documents (messages.hpp), output and input are raw bytes.
namespace runjob {

/// Sixteen bytes; the digit is the version of everything on the channel.
inline constexpr std::string_view kMagic("\x7frunjob-frames1\n", 16);
/// What a login shell may print before kMagic and is skipped.
inline constexpr std::size_t kMaxNoiseBytes = 64 * 1024;
/// A rendezvous body of 16 MiB and its envelope fit.
inline constexpr std::uint32_t kMaxPayloadBytes = 17u << 20;
inline constexpr std::size_t kFrameHeaderBytes = 20;

/// Who sends it: A the agent, L the launcher.
enum class FrameType : std::uint8_t {
  kHello = 1,         ///< A  Hello: first frame, the agent is ready
  kLaunch = 2,        ///< L  Launch: start these ranks
  kStarted = 3,       ///< A  Started: a rank's process runs the command
  kStartFailed = 4,   ///< A  StartFailed: it could not
  kOutput = 5,        ///< A  raw bytes of a rank's stream; none = the end of it
  kOutputCredit = 6,  ///< L  Credit: that many more bytes of the stream may be sent
  kInput = 7,         ///< L  raw bytes for a rank's standard input; none = the end of it
  kInputCredit = 8,   ///< A  Credit
  kExited = 9,        ///< A  Exited: a rank's process has ended
  kSignal = 10,       ///< L  Signal: send it to a rank's process group, or to all with rank -1
  kEnd = 11,          ///< L  End: SIGTERM to all, SIGKILL after the grace period
  kJoined = 12,       ///< A  empty: a rank has called init()
  kRequest = 13,      ///< A  RelayedRequest: a rank asks the rendezvous
  kReply = 14,        ///< L  RelayedReply
  kFinished = 15,     ///< A  empty: no process of the job is left on the host, all output has been sent
  kHeartbeat = 16,    ///< both  empty: the sender lives; see heartbeat.hpp
  kPause = 17,        ///< L  empty: no heartbeat will come until the next one
  // network/probe_messages.hpp; before kLaunch
  kProbeListen = 18,     ///< L  ProbeListen: let other hosts try these addresses of yours
  kProbeListening = 19,  ///< A  ProbeListening: where they can
  kProbeConnect = 20,    ///< L  ProbeConnect: try these addresses of other hosts
  kProbeResults = 21,    ///< A  ProbeResults: what came of it
  kProbeEnd = 22,        ///< L  empty: close all that listens
  // before the job is ended
  kStackTraces = 23,  ///< L  empty: find out where your ranks are
  kStackTrace = 24,   ///< A  StackTrace: where this rank is; of each rank
  kDumpPython = 25,   ///< L  empty: SIGABRT to the programs that print their stack then
  kToldToEnd = 26,    ///< A  empty: a batch system has told all processes here to end, the ranks too
};

enum class Stream : std::uint8_t { kNone = 0, kStdout = 1, kStderr = 2 };

struct FrameHeader {
  FrameType type{};
  Stream stream = Stream::kNone;
  std::int32_t rank = -1;
  std::int64_t time_us = 0;
  std::uint32_t length = 0;
};

/// Appends the header's 20 bytes to `out`.
void append_header(std::string& out, const FrameHeader& header);

/// Turns the received bytes back into frames, in order. Finds kMagic first, skipping noise before it.
/// Owner    owns the receive buffer: read into space(), then call consume().
/// Errors   consume() throws Error(kProtocol) for bytes that are no frames: no magic within kMaxNoiseBytes
/// (the text quotes the
///          noise, which is what a failing login shell said), another version, an unknown type, a payload too
///          long.
class FrameParser {
 public:
  /// `payload` is lent for the call.
  using OnFrame = std::function<void(const FrameHeader& header, std::string_view payload)>;

  explicit FrameParser(std::size_t buffer_bytes = 256 * 1024);

  struct Space {
    char* data;
    std::size_t size;  ///< at least 1
  };
  Space space();

  /// The same as writing `bytes` to space() and calling consume().
  void feed(std::string_view bytes, const OnFrame& on_frame);

  /// `bytes` have been written to space(); calls `on_frame` for each complete frame.
  void consume(std::size_t bytes, const OnFrame& on_frame);

  /// What came before the magic, for an error text when the stream ends early.
  std::string noise() const;
  bool seen_magic() const { return seen_magic_; }

 private:
  bool find_magic();
  void grow_to(std::size_t bytes);

  std::unique_ptr<char[]> buffer_;
  std::size_t capacity_;
  std::size_t begin_ = 0;  // parsed up to here
  std::size_t end_ = 0;    // received up to here
  bool seen_magic_ = false;
};

}  // namespace runjob
