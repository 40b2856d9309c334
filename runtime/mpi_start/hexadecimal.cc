#include "runtime/mpi_start/hexadecimal.hpp"

#include <charconv>

#include <fmt/format.h>

#include "base/error.hpp"

namespace runjob::runtime {

std::string to_hexadecimal(std::string_view bytes) {
  constexpr char kDigits[] = "0123456789abcdef";
  std::string text;
  for (const char c : bytes) {
    const auto byte = static_cast<unsigned char>(c);
    text += kDigits[byte >> 4];
    text += kDigits[byte & 15];
  }
  return text;
}

std::string from_hexadecimal(std::string_view text) {
  std::string bytes;
  for (std::size_t at = 0; at < text.size(); at += 2) {
    unsigned int byte = 0;
    const char* end = text.data() + at + 2;
    if (at + 2 > text.size() || std::from_chars(text.data() + at, end, byte, 16).ptr != end) {
      throw Error(Errc::kProtocol, fmt::format("'{}' is not hexadecimal", text));
    }
    bytes += static_cast<char>(byte);
  }
  return bytes;
}

}  // namespace runjob::runtime
