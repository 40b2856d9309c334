#pragma once

#include <functional>
#include <string>
#include <string_view>

struct stat;

namespace runjob {

/// The whole content of `path`, at most 64 MiB, so that /dev/zero is an error too. It may also be a pipe. One that is
/// open in this process, as /dev/fd/63 is, can be read there again.
/// `what` names its role in messages: "hostfile".
/// Errors  Error(kUsage): `cannot read hostfile PATH: REASON; check the path and its permissions`.
std::string read_file(const std::string& path, std::string_view what);

/// The same, after `accept` has seen the opened file, its owner and its mode; it throws to refuse them.
std::string read_file(const std::string& path, std::string_view what,
                      const std::function<void(int file, const struct ::stat&)>& accept);

}  // namespace runjob
