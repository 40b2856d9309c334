#include "rendezvous/job_key.hpp"

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <sodium/randombytes.h>
#include <sodium/utils.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/unique_handle.hpp"
#include "rendezvous/auth.hpp"
#include "rendezvous/libsodium.hpp"

namespace runjob::rendezvous {
namespace {

constexpr std::size_t kDigits = 2 * std::tuple_size_v<JobKey::Bytes>;

Error refuse(const std::string& path, const std::string& why) {
  return Error(Errc::kAuth, fmt::format("job key file {}: {}", path, why));
}

/// This checks the opened file, because the path may name another file between a check and the reading.
void check_owner(int file, const std::string& path) {
  struct stat info {};
  if (::fstat(file, &info) != 0) throw refuse(path, std::strerror(errno));
  if (!S_ISREG(info.st_mode)) throw refuse(path, "it is not a regular file; name the file that the launcher made");
  if (info.st_uid != ::geteuid())
    throw refuse(path,
                 fmt::format("it belongs to user {}, not to user {}; make one of your own", info.st_uid, ::geteuid()));
  if ((info.st_mode & 07177) != 0)
    throw refuse(path,
                 fmt::format("its mode is {:04o}, and others could read the key or change it; make a new key in a "
                             "file of mode 0600",
                             info.st_mode & 07777));
}

}  // namespace

JobKey JobKey::random() {
  prepare_libsodium();
  JobKey key;
  ::randombytes_buf(key.bytes_.bytes().data(), key.bytes_.bytes().size());
  return key;
}

JobKey JobKey::from_hex(std::string_view text) {
  JobKey key;
  if (!read_hex(text, key.bytes_.bytes()))
    throw Error(Errc::kAuth, fmt::format("a job's key is {} hexadecimal digits", kDigits));
  return key;
}

JobKey JobKey::read_file(const std::string& path) {
  const UniqueFd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  if (!file) throw refuse(path, fmt::format("{}; RUNJOB_JOB_KEY_FILE names it", std::strerror(errno)));
  check_owner(file.get(), path);
  std::array<char, kDigits + 2> text{};  // the newline, and one byte more to notice that there is more
  std::size_t length = 0;
  for (;;) {
    const ssize_t got = ::read(file.get(), text.data() + length, text.size() - length);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) throw refuse(path, std::strerror(errno));
    length += static_cast<std::size_t>(got);
    if (got == 0 || length == text.size()) break;
  }
  if (length == kDigits + 1 && text[kDigits] == '\n') --length;
  JobKey key;
  const bool is_key = read_hex({text.data(), length}, key.bytes_.bytes());
  ::sodium_memzero(text.data(), text.size());
  if (!is_key) throw refuse(path, fmt::format("expected {} hexadecimal digits and nothing else", kDigits));
  return key;
}

void JobKey::write_file(const std::string& path) const {
  const auto fail = [&path] { return system_error(fmt::format("cannot write the job key file {}", path), errno); };
  const UniqueFd file(::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!file) throw fail();
  if (::fchmod(file.get(), 0600) != 0) throw fail();  // whatever the umask is
  std::string text = hex() + "\n";
  const ssize_t written = ::write(file.get(), text.data(), text.size());
  const bool is_whole = written == static_cast<ssize_t>(text.size());
  wipe(text);
  if (!is_whole) throw fail();
}

std::string JobKey::hex() const {
  return to_hex(bytes_);
}

}  // namespace runjob::rendezvous
