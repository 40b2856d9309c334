#include "launcher/frame.hpp"

#include <algorithm>
#include <cstring>

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

FrameHeader read_header(const char* bytes) {
  const auto type = static_cast<std::uint8_t>(bytes[4]);
  const auto stream = static_cast<std::uint8_t>(bytes[5]);
  if (type < static_cast<std::uint8_t>(FrameType::kHello) || type > static_cast<std::uint8_t>(FrameType::kToldToEnd)) {
    throw Error(Errc::kProtocol, fmt::format("frame of unknown type {}", type));
  }
  if (stream > static_cast<std::uint8_t>(Stream::kStderr)) {
    throw Error(Errc::kProtocol, fmt::format("frame of unknown stream {}", stream));
  }
  FrameHeader header;
  header.length = read_little_endian<std::uint32_t>(bytes);
  header.type = static_cast<FrameType>(type);
  header.stream = static_cast<Stream>(stream);
  header.rank = read_little_endian<std::int32_t>(bytes + 8);
  header.time_us = read_little_endian<std::int64_t>(bytes + 12);
  if (header.length > kMaxPayloadBytes) {
    throw Error(Errc::kProtocol, fmt::format("frame of {} bytes, more than {}", header.length, kMaxPayloadBytes));
  }
  return header;
}

}  // namespace

void append_header(std::string& out, const FrameHeader& header) {
  append_little_endian(out, header.length);
  out.push_back(static_cast<char>(header.type));
  out.push_back(static_cast<char>(header.stream));
  append_little_endian(out, std::uint16_t{0});
  append_little_endian(out, header.rank);
  append_little_endian(out, header.time_us);
}

FrameParser::FrameParser(std::size_t buffer_bytes)
    : buffer_(std::make_unique_for_overwrite<char[]>(buffer_bytes)), capacity_(buffer_bytes) {}

FrameParser::Space FrameParser::space() {
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

void FrameParser::consume(std::size_t bytes, const OnFrame& on_frame) {
  end_ += bytes;
  if (!seen_magic_ && !find_magic()) return;
  while (end_ - begin_ >= kFrameHeaderBytes) {
    const FrameHeader header = read_header(buffer_.get() + begin_);
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

void FrameParser::feed(std::string_view bytes, const OnFrame& on_frame) {
  while (!bytes.empty()) {
    const Space free = space();
    const std::size_t size = std::min(free.size, bytes.size());
    std::memcpy(free.data, bytes.data(), size);
    bytes.remove_prefix(size);
    consume(size, on_frame);
  }
}

bool FrameParser::find_magic() {
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

void FrameParser::grow_to(std::size_t bytes) {
  auto larger = std::make_unique_for_overwrite<char[]>(bytes);
  std::memcpy(larger.get(), buffer_.get() + begin_, end_ - begin_);
  buffer_ = std::move(larger);
  capacity_ = bytes;
  end_ -= begin_;
  begin_ = 0;
}

std::string FrameParser::noise() const {
  constexpr std::size_t kQuoted = 400;
  std::string text(buffer_.get(), seen_magic_ ? 0 : std::min(end_, kQuoted));
  std::replace_if(
      text.begin(), text.end(), [](unsigned char c) { return c < ' ' || c >= 0x7f; }, ' ');
  return text;
}

}  // namespace runjob
