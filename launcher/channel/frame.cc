#include "launcher/channel/frame.hpp"

#include <algorithm>
#include <cstring>
#include <type_traits>

#include <fmt/format.h>

#include "base/error.hpp"

namespace runjob {
namespace {

template <class Integer>
void append_little_endian(std::string& out, Integer value) {
  const auto bits = static_cast<std::make_unsigned_t<Integer>>(value);
  for (std::size_t i = 0; i < sizeof(Integer); ++i) out.push_back(static_cast<char>(bits >> (8 * i)));
}

template <class Integer>
Integer read_little_endian(const char* bytes) {
  std::make_unsigned_t<Integer> bits = 0;
  for (std::size_t i = 0; i < sizeof(Integer); ++i) {
    bits |= static_cast<std::make_unsigned_t<Integer>>(static_cast<unsigned char>(bytes[i])) << (8 * i);
  }
  return static_cast<Integer>(bits);
}

// The compiler names an enumerator that these two forget.
bool exists(ToAgent type) {
  switch (type) {
    case ToAgent::kLaunch:
    case ToAgent::kOutputCredit:
    case ToAgent::kInput:
    case ToAgent::kSignal:
    case ToAgent::kEnd:
    case ToAgent::kReply:
    case ToAgent::kHeartbeat:
    case ToAgent::kPause:
    case ToAgent::kProbeListen:
    case ToAgent::kProbeConnect:
    case ToAgent::kProbeEnd:
    case ToAgent::kStackTraces:
    case ToAgent::kDumpPython:
    case ToAgent::kNotice:
      return true;
  }
  return false;
}

bool exists(ToLauncher type) {
  switch (type) {
    case ToLauncher::kHello:
    case ToLauncher::kStarted:
    case ToLauncher::kStartFailed:
    case ToLauncher::kOutput:
    case ToLauncher::kInputCredit:
    case ToLauncher::kExited:
    case ToLauncher::kJoined:
    case ToLauncher::kRequest:
    case ToLauncher::kFinished:
    case ToLauncher::kHeartbeat:
    case ToLauncher::kProbeListening:
    case ToLauncher::kProbeResults:
    case ToLauncher::kStackTrace:
    case ToLauncher::kToldToEnd:
    case ToLauncher::kFailed:
    case ToLauncher::kRemaining:
    case ToLauncher::kEntered:
      return true;
  }
  return false;
}

/// The frame type with this number, if this direction has it.
template <FrameType Type>
Type type_of(std::uint8_t number) {
  const auto type = static_cast<Type>(number);
  if (exists(type)) return type;
  if (exists(static_cast<ToAgent>(number)) || exists(static_cast<ToLauncher>(number)))
    throw Error(Errc::kProtocol, fmt::format("frame of type {}, which only {} sends", number,
                                             std::is_same_v<Type, ToLauncher> ? "the launcher" : "an agent"));
  throw Error(Errc::kProtocol, fmt::format("frame of unknown type {}", number));
}

template <FrameType Type>
FrameHeader<Type> read_header(const char* bytes) {
  const auto stream = static_cast<std::uint8_t>(bytes[5]);
  FrameHeader<Type> header;
  header.type = type_of<Type>(static_cast<std::uint8_t>(bytes[4]));
  if (stream > static_cast<std::uint8_t>(Stream::kStderr)) {
    throw Error(Errc::kProtocol, fmt::format("frame of unknown stream {}", stream));
  }
  header.length = read_little_endian<std::uint32_t>(bytes);
  header.stream = static_cast<Stream>(stream);
  header.process = read_little_endian<std::int32_t>(bytes + 8);
  header.time_us = read_little_endian<std::int64_t>(bytes + 12);
  if (header.length > kMaxPayloadBytes) {
    throw Error(Errc::kProtocol, fmt::format("frame of {} bytes, more than {}", header.length, kMaxPayloadBytes));
  }
  return header;
}

}  // namespace

bool is_about_process(ToLauncher type) {
  switch (type) {
    case ToLauncher::kStarted:
    case ToLauncher::kStartFailed:
    case ToLauncher::kOutput:
    case ToLauncher::kInputCredit:
    case ToLauncher::kExited:
    case ToLauncher::kJoined:
    case ToLauncher::kStackTrace:
    case ToLauncher::kEntered:
      return true;
    case ToLauncher::kHello:
    case ToLauncher::kRequest:
    case ToLauncher::kFinished:
    case ToLauncher::kHeartbeat:
    case ToLauncher::kProbeListening:
    case ToLauncher::kProbeResults:
    case ToLauncher::kToldToEnd:
    case ToLauncher::kFailed:
    case ToLauncher::kRemaining:
      return false;
  }
  return false;
}

template <FrameType Type>
void append_header(std::string& out, const FrameHeader<Type>& header) {
  append_little_endian(out, header.length);
  out.push_back(static_cast<char>(header.type));
  out.push_back(static_cast<char>(header.stream));
  append_little_endian(out, std::uint16_t{0});
  append_little_endian(out, header.process);
  append_little_endian(out, header.time_us);
}

template <FrameType Type>
FrameParser<Type>::FrameParser(std::size_t buffer_bytes)
    : buffer_(std::make_unique_for_overwrite<char[]>(buffer_bytes)), capacity_(buffer_bytes) {}

template <FrameType Type>
typename FrameParser<Type>::Space FrameParser<Type>::space() {
  if (begin_ == end_) begin_ = end_ = 0;
  if (end_ == capacity_) {
    if (begin_ == 0) {
      grow_to(capacity_ * 2);
    } else {
      std::memmove(buffer_.get(), buffer_.get() + begin_, end_ - begin_);
      end_ -= begin_;
      begin_ = 0;
    }
  }
  return {buffer_.get() + end_, capacity_ - end_};
}

template <FrameType Type>
void FrameParser<Type>::consume(std::size_t bytes, const OnFrame& on_frame) {
  end_ += bytes;
  if (!seen_magic_ && !find_magic()) return;
  while (end_ - begin_ >= kFrameHeaderBytes) {
    const FrameHeader<Type> header = read_header<Type>(buffer_.get() + begin_);
    const std::size_t whole = kFrameHeaderBytes + header.length;
    if (end_ - begin_ < whole) {
      if (whole > capacity_) grow_to(whole);
      return;
    }
    const std::string_view payload(buffer_.get() + begin_ + kFrameHeaderBytes, header.length);
    begin_ += whole;
    on_frame(header, payload);
  }
}

template <FrameType Type>
void FrameParser<Type>::feed(std::string_view bytes, const OnFrame& on_frame) {
  while (!bytes.empty()) {
    const Space free = space();
    const std::size_t size = std::min(free.size, bytes.size());
    std::memcpy(free.data, bytes.data(), size);
    bytes.remove_prefix(size);
    consume(size, on_frame);
  }
}

template <FrameType Type>
bool FrameParser<Type>::find_magic() {
  const std::string_view received(buffer_.get(), end_);
  constexpr std::string_view kAnyVersion = kMagic.substr(0, 14);
  const std::size_t at = received.find(kAnyVersion);
  if (at != std::string_view::npos && received.size() >= at + kMagic.size()) {
    if (received.substr(at, kMagic.size()) != kMagic) {
      throw Error(Errc::kProtocol, "the other side speaks another version of the frame protocol");
    }
    begin_ = at + kMagic.size();
    seen_magic_ = true;
    return true;
  }
  if (end_ > kMaxNoiseBytes + kMagic.size()) {
    throw Error(Errc::kProtocol, fmt::format("the agent did not answer; received instead: {}", noise()));
  }
  return false;
}

template <FrameType Type>
void FrameParser<Type>::grow_to(std::size_t bytes) {
  auto larger = std::make_unique_for_overwrite<char[]>(bytes);
  std::memcpy(larger.get(), buffer_.get() + begin_, end_ - begin_);
  buffer_ = std::move(larger);
  capacity_ = bytes;
  end_ -= begin_;
  begin_ = 0;
}

template <FrameType Type>
std::string FrameParser<Type>::noise() const {
  constexpr std::size_t kQuoted = 400;
  std::string text(buffer_.get(), seen_magic_ ? 0 : std::min(end_, kQuoted));
  std::replace_if(
      text.begin(), text.end(), [](unsigned char c) { return c < ' ' || c >= 0x7f; }, ' ');
  return text;
}

template void append_header(std::string&, const FrameHeader<ToAgent>&);
template void append_header(std::string&, const FrameHeader<ToLauncher>&);
template class FrameParser<ToAgent>;
template class FrameParser<ToLauncher>;

}  // namespace runjob
