#include "base/read_file.hpp"

#include <array>
#include <cerrno>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <system_error>
#include <unistd.h>

#include <fmt/format.h>

#include "base/descriptors.hpp"
#include "base/error.hpp"
#include "base/unique_handle.hpp"

namespace runjob {
namespace {

/// Puts `text` where `pipe`, which had it, is open, so that its path (/dev/fd/63 of `--env-file <(...)`) can be read
/// again, also by the program that this process becomes. The descriptor itself is at its end, as before.
void keep_content(const struct ::stat& pipe, const std::string& text) {
  const UniqueFd copy(::memfd_create("runjob-pipe", MFD_CLOEXEC));
  const auto size = static_cast<ssize_t>(text.size());
  if (!copy || ::fchmod(copy.get(), 0600) != 0 || ::write(copy.get(), text.data(), text.size()) != size) return;
  for (const int descriptor : open_descriptors()) {
    struct stat info {};
    const bool is_pipe = ::fstat(descriptor, &info) == 0 && info.st_dev == pipe.st_dev && info.st_ino == pipe.st_ino;
    if (is_pipe) ::dup2(copy.get(), descriptor);
  }
}

}  // namespace

std::string read_file(const std::string& path, std::string_view what) {
  return read_file(path, what, [](int, const struct ::stat&) {});
}

std::string read_file(const std::string& path, std::string_view what,
                      const std::function<void(int file, const struct ::stat&)>& accept) {
  constexpr std::size_t kLargest = std::size_t{64} << 20;
  const auto refuse = [&](const std::string& reason) {
    throw Error(Errc::kUsage,
                fmt::format("cannot read {} {}: {}; check the path and its permissions", what, path, reason));
  };
  UniqueFd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  struct stat info {};
  if (!file || ::fstat(file.get(), &info) != 0) refuse(std::system_category().message(errno));
  accept(file.get(), info);
  std::string text;
  std::array<char, 65'536> block{};
  for (;;) {
    const ssize_t count = ::read(file.get(), block.data(), block.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) refuse(std::system_category().message(errno));
    if (count == 0) break;
    text.append(block.data(), static_cast<std::size_t>(count));
    if (text.size() > kLargest) refuse("it is larger than 64 MiB");
  }
  file.reset();
  if (S_ISFIFO(info.st_mode)) keep_content(info, text);
  return text;
}

}  // namespace runjob
