#include "launcher/ssh/files/ssh_data.hpp"

#include <openssl/evp.h>

namespace runjob {

std::uint8_t SshDataReader::byte() {
  const std::string_view data = take(1);
  return failed_ ? std::uint8_t{0} : static_cast<std::uint8_t>(data[0]);
}

std::uint32_t SshDataReader::number() {
  std::uint32_t result = 0;
  for (const char c : take(4)) result = result << 8 | static_cast<std::uint8_t>(c);
  return result;
}

std::string_view SshDataReader::string() {
  return take(number());
}

std::string_view SshDataReader::take(std::size_t size) {
  if (failed_ || size > rest_.size()) {
    failed_ = true;
    rest_ = {};
    return {};
  }
  const std::string_view result = rest_.substr(0, size);
  rest_.remove_prefix(size);
  return result;
}

void append_number(std::string& bytes, std::uint32_t number) {
  for (int shift = 24; shift >= 0; shift -= 8) bytes += static_cast<char>(number >> shift & 0xff);
}

void append_string(std::string& bytes, std::string_view string) {
  append_number(bytes, static_cast<std::uint32_t>(string.size()));
  bytes += string;
}

std::string base64_encode(std::string_view bytes) {
  std::string text((bytes.size() + 2) / 3 * 4 + 1, '\0');  // one more for the zero that OpenSSL writes
  const int size =
      EVP_EncodeBlock(reinterpret_cast<unsigned char*>(text.data()),
                      reinterpret_cast<const unsigned char*>(bytes.data()), static_cast<int>(bytes.size()));
  text.resize(static_cast<std::size_t>(size));
  return text;
}

std::string base64_decode(std::string_view text) {
  constexpr std::string_view kDigits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string_view digits = text;
  while (text.size() - digits.size() < 2 && !digits.empty() && digits.back() == '=') digits.remove_suffix(1);
  if (text.empty() || text.size() % 4 != 0 || digits.find_first_not_of(kDigits) != std::string_view::npos) return "";
  std::string bytes(text.size() / 4 * 3, '\0');
  const int size = EVP_DecodeBlock(reinterpret_cast<unsigned char*>(bytes.data()),
                                   reinterpret_cast<const unsigned char*>(text.data()), static_cast<int>(text.size()));
  if (size < 0) return "";
  bytes.resize(static_cast<std::size_t>(size) - (text.size() - digits.size()));  // OpenSSL counts the padding too
  return bytes;
}

}  // namespace runjob
