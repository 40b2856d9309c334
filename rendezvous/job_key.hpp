#pragma once

#include <string>
#include <string_view>

#include "base/secrets/secret.hpp"

namespace runjob::rendezvous {

/// The secret of one job, 256 random bits. A process that has it belongs to the job. The key travels in frames, through
/// standard input or in a file of mode 0600, never on a command line and never in the environment.
/// Threads  a value; its memory is wiped at the end, and neither core dumps nor swap have it.
class JobKey {
 public:
  using Bytes = Secret::Bytes;

  static JobKey random();

  /// Parses 64 hexadecimal digits.
  /// Errors  Error(kAuth), which does not show `text`.
  static JobKey from_hex(std::string_view text);

  /// Reads a file of 64 hexadecimal digits and an optional newline. It must belong to this user, and no other user may
  /// read it.
  /// Errors  Error(kAuth) naming the path, the problem and the remedy.
  static JobKey read_file(const std::string& path);

  /// Creates `path`, which must not exist yet, readable by this user alone.
  /// Errors  Error(kSystem).
  void write_file(const std::string& path) const;

  const Bytes& bytes() const { return bytes_; }
  std::string hex() const;

 private:
  JobKey() = default;

  Secret bytes_;
};

}  // namespace runjob::rendezvous
