#pragma once

#include <string_view>

#include "launcher/ssh/files/public_key.hpp"
#include "launcher/ssh/files/ssh_data.hpp"

namespace runjob {

/// A public key of this type in SSH's form. No private key belongs to it.
inline PublicKey key_of(std::string_view type, std::string_view value) {
  PublicKey key;
  append_string(key.blob, type);
  append_string(key.blob, value);
  return key;
}

}  // namespace runjob
