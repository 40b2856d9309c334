#pragma once

#include <concepts>
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
///          8  i32 process, -1 for none      12 i64 time of the source in microseconds since 1970, 0 for none
///
/// Control payloads are CBOR documents (messages.hpp); output and input are raw bytes. The two directions have types of
/// their own, so that neither side can send, or has to expect, a frame of the other one.
namespace runjob {

/// Sixteen bytes. The digit is the version of everything on the channel.
inline constexpr std::string_view kMagic("\x7frunjob-frames1\n", 16);
/// The parser skips up to this many bytes before kMagic: a login shell may print something.
inline constexpr std::size_t kMaxNoiseBytes = std::size_t{64} * 1024;
/// Large enough for a rendezvous body of 16 MiB and its envelope.
inline constexpr std::uint32_t kMaxPayloadBytes = 17u << 20;
inline constexpr std::size_t kFrameHeaderBytes = 20;

/// A frame that the launcher sends to an agent. Both directions share one sequence of numbers; see
/// docs/developers/agent-channel.md.
enum class ToAgent : std::uint8_t {
  kLaunch = 2,         ///< Launch: start these processes
  kOutputCredit = 6,   ///< Credit: the agent may send that many more bytes of the stream
  kInput = 7,          ///< raw bytes for a process's standard input; an empty frame ends the input
  kSignal = 10,        ///< Signal: send it to the process group of a process, or with -1 to all of them
  kEnd = 11,           ///< End: the signal to all ranks, SIGKILL after the grace period
  kReply = 14,         ///< RelayedReply
  kHeartbeat = 16,     ///< empty: the launcher is alive; see heartbeat.hpp
  kPause = 17,         ///< empty: the launcher sends no heartbeat until its next one
  kProbeListen = 18,   ///< ProbeListen: let other hosts try these addresses; before kLaunch, as the next two
  kProbeConnect = 20,  ///< ProbeConnect: try these addresses of other hosts
  kProbeEnd = 22,      ///< empty: close every socket of the probe
  kStackTraces = 23,   ///< empty: collect the stacks of all ranks
  kNotice = 29,        ///< raw text: the rendezvous::Notice of an elastic job as JSON
  kDumpPython = 25,    ///< empty: send SIGABRT to the programs that print their stack on it
};

/// A frame that an agent sends to the launcher.
enum class ToLauncher : std::uint8_t {
  kHello = 1,            ///< Hello: the first frame; the agent is ready
  kStarted = 3,          ///< Started: a process runs the command
  kStartFailed = 4,      ///< StartFailed: a process could not be started
  kOutput = 5,           ///< raw bytes of a process's stream; an empty frame ends the stream
  kInputCredit = 8,      ///< Credit: the launcher may send that many more bytes of input
  kExited = 9,           ///< Exited: a process has ended
  kJoined = 12,          ///< empty: a process has called init()
  kRequest = 13,         ///< RelayedRequest: a process's request to the rendezvous
  kFinished = 15,        ///< empty: no process of the job is left on the host, and all output has been sent
  kHeartbeat = 16,       ///< empty: the agent is alive
  kProbeListening = 19,  ///< ProbeListening: the ports on which the other hosts can try this one
  kProbeResults = 21,    ///< ProbeResults: the outcome of each attempt
  kStackTrace = 24,      ///< StackTrace: the stack of one process
  kToldToEnd = 26,       ///< empty: a batch system has signalled all processes here to end, the ranks too
  kFailed = 27,          ///< raw text: the reason why the agent gives up; the channel ends after it
  kEntered = 30,         ///< empty: a process has entered elastic.run()
  kRemaining = 28,       ///< Remaining: the processes that have not ended after the signal to end
};

/// False for a frame that is about the whole host. The header of any other one has a rank.
bool is_about_process(ToLauncher type);

/// The two directions of the channel.
template <class Type>
concept FrameType = std::same_as<Type, ToAgent> || std::same_as<Type, ToLauncher>;

enum class Stream : std::uint8_t { kNone = 0, kStdout = 1, kStderr = 2 };

template <FrameType Type>
struct FrameHeader {
  Type type{};
  Stream stream = Stream::kNone;
  std::int32_t process = -1;  ///< the number of the process that it is about; -1: it is about none
  std::int64_t time_us = 0;
  std::uint32_t length = 0;
};

/// Appends the header's 20 bytes to `out`.
template <FrameType Type>
void append_header(std::string& out, const FrameHeader<Type>& header);

/// Turns the received bytes back into frames of one direction, in order. Finds kMagic first, skipping noise before it.
/// Owner    owns the receive buffer: read into space(), then call consume().
/// Threads  one.
/// Errors   consume() throws Error(kProtocol) for bytes that are no frames of this direction: no magic within
///          kMaxNoiseBytes (the text quotes the noise, often the error of a login shell), another version, a type
///          that is unknown or belongs to the other direction, a payload that is too long.
template <FrameType Type>
class FrameParser {
 public:
  /// `payload` is lent for the call.
  using OnFrame = std::function<void(const FrameHeader<Type>& header, std::string_view payload)>;

  explicit FrameParser(std::size_t buffer_bytes = std::size_t{256} * 1024);

  struct Space {
    char* data;
    std::size_t size;  ///< at least 1
  };
  Space space();

  /// Has the same effect as writing `bytes` to space() and calling consume().
  void feed(std::string_view bytes, const OnFrame& on_frame);

  /// Calls `on_frame` for each frame that is complete with the `bytes` that the caller has written to space().
  void consume(std::size_t bytes, const OnFrame& on_frame);

  /// The bytes before the magic, for an error text when the stream ends early.
  std::string noise() const;

 private:
  bool find_magic();
  void grow_to(std::size_t bytes);

  std::unique_ptr<char[]> buffer_;
  std::size_t capacity_;
  std::size_t begin_ = 0;  // the bytes before it have been parsed
  std::size_t end_ = 0;    // the bytes before it have been received
  bool seen_magic_ = false;
};

}  // namespace runjob
