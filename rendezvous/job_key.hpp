#pragma once

#include <array>
#include <string>
#include <string_view>

namespace runjob::rendezvous {

/// The secret of one job, 256 random bits: who holds it belongs to the job. It travels in frames, through
/// standard input or in a file of mode 0600, never on a command line and never in the environment.
/// Threads  a value; its memory is wiped at the end.
class JobKey {
 public:
  using Bytes = std::array<unsigned char, 32>;

  static JobKey random();

  /// 64 hexadecimal digits. Errors  Error(kAuth), which does not show `text`.
  static JobKey from_hex(std::string_view text);

  /// A file of 64 hexadecimal digits and perhaps a newline, which belongs to this user and which nobody else
  /// may read. Errors  Error(kAuth) naming the path, what is wrong with it, and the remedy.
  static JobKey read_file(const std::string& path);

  ~JobKey();
  JobKey(const JobKey&) = default;
  JobKey& operator=(const JobKey&) = default;

  /// Makes `path`, which must not exist yet, for this user alone. Errors  Error(kSystem).
  void write_file(const std::string& path) const;

  const Bytes& bytes() const { return bytes_; }
  std::string hex() const;

 private:
  JobKey() = default;

  Bytes bytes_{};
};

}  // namespace runjob::rendezvous
