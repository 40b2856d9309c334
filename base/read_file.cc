#include "base/read_file.hpp"

#include <array>
#include <cerrno>
#include <fcntl.h>
#include <sys/stat.h>
#include <system_error>
#include <unistd.h>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/unique_handle.hpp"

namespace runjob {

std::string read_file(const std::string& path, std::string_view what) {
  return read_file(path, what, [](const struct ::stat&) {});
}

std::string read_file(const std::string& path, std::string_view what,
                      const std::function<void(const struct ::stat&)>& accept) {
  constexpr std::size_t kLargest = std::size_t{64} << 20;
  const auto refuse = [&](const std::string& reason) {
    throw Error(Errc::kUsage,
                fmt::format("cannot read {} {}: {}; check the path and its permissions", what, path, reason));
  };
  const UniqueFd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  struct stat info {};
  if (!file || ::fstat(file.get(), &info) != 0) refuse(std::system_category().message(errno));
  accept(info);
  std::string text;
  std::array<char, 65'536> block{};
  for (;;) {
    const ssize_t count = ::read(file.get(), block.data(), block.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) refuse(std::system_category().message(errno));
    if (count == 0) return text;
    text.append(block.data(), static_cast<std::size_t>(count));
    if (text.size() > kLargest) refuse("it is larger than 64 MiB");
  }
}

}  // namespace runjob
