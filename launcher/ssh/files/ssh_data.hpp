#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace runjob {

/// Reads the data types of RFC 4251, section 5, from the front of `bytes`, which it lends. Safe on any bytes: what is
/// not there makes the reader fail for good, and every result is then 0 or empty.
class SshDataReader {
 public:
  explicit SshDataReader(std::string_view bytes) : rest_(bytes) {}

  std::uint8_t byte();
  std::uint32_t number();
  std::string_view string();

  bool failed() const { return failed_; }
  std::string_view rest() const { return rest_; }

 private:
  std::string_view take(std::size_t size);

  std::string_view rest_;
  bool failed_ = false;
};

/// The same in the other direction: each appends to `bytes`.
void append_number(std::string& bytes, std::uint32_t number);
void append_string(std::string& bytes, std::string_view string);

/// Base64 of RFC 4648, section 4. decode gives "" for what is not it.
std::string base64_encode(std::string_view bytes);
std::string base64_decode(std::string_view text);

}  // namespace runjob
