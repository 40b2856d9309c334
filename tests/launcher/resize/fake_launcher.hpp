#pragma once

#include <array>
#include <cstring>
#include <string>
#include <string_view>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/unique_handle.hpp"
#include "tests/catch.hpp"

namespace runjob {

/// A process of any user that listens where a launcher of an elastic job could, and answers one request.
class FakeLauncher {
 public:
  /// Returns when it listens at `path`. Another `user` than this one needs root.
  FakeLauncher(const std::string& path, const std::string& reply, ::uid_t user) {
    std::array<int, 2> ends{};
    REQUIRE(::pipe(ends.data()) == 0);
    report_.reset(ends[0]);
    UniqueFd report(ends[1]);
    process_ = ::fork();
    REQUIRE(process_ >= 0);
    if (process_ == 0) ::_exit(answer(path, reply, user, report.get()) ? 0 : 1);
    report.reset();
    char listens = 0;
    REQUIRE(::read(report_.get(), &listens, 1) == 1);
  }
  ~FakeLauncher() {
    if (process_ > 0) ::waitpid(process_, nullptr, 0);
  }

  /// Returns the bytes that the process has received. Blocks until its connection has ended.
  std::string received() {
    std::string text;
    std::array<char, 1024> block{};
    for (ssize_t size = 0; (size = ::read(report_.get(), block.data(), block.size())) > 0;)
      text.append(block.data(), static_cast<std::size_t>(size));
    return text;
  }

 private:
  static bool answer(const std::string& path, std::string_view reply, ::uid_t user, int report) {
    if (user != ::getuid() && ::setuid(user) != 0) return false;
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    if (path.size() >= sizeof address.sun_path) return false;
    std::memcpy(address.sun_path, path.c_str(), path.size());
    const UniqueFd listener(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    if (::bind(listener.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0 ||
        ::listen(listener.get(), 1) != 0 || ::write(report, "l", 1) != 1)
      return false;
    const UniqueFd caller(::accept(listener.get(), nullptr, nullptr));
    std::array<char, 1024> request{};
    const ssize_t size = ::recv(caller.get(), request.data(), request.size(), 0);
    if (size <= 0) return size == 0;
    return ::write(report, request.data(), static_cast<std::size_t>(size)) == size &&
           ::send(caller.get(), reply.data(), reply.size(), MSG_NOSIGNAL) == static_cast<ssize_t>(reply.size());
  }

  UniqueFd report_;
  ::pid_t process_ = -1;
};

}  // namespace runjob
