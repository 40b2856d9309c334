#include "runtime/job/rank_claim.hpp"

#include <cerrno>
#include <fcntl.h>
#include <unistd.h>

#include <fmt/format.h>

#include "base/error.hpp"

namespace runjob::runtime {

RankClaim::RankClaim(const std::string& directory, int rank) {
  if (directory.empty()) return;
  const std::string path = fmt::format("{}/rank.{}", directory, rank);
  file_.reset(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!file_) return;
  struct flock lock {};
  lock.l_type = F_WRLCK;
  lock.l_whence = SEEK_SET;
  if (::fcntl(file_.get(), F_SETLK, &lock) == 0 || (errno != EACCES && errno != EAGAIN)) return;
  struct flock holder = lock;
  const bool is_known = ::fcntl(file_.get(), F_GETLK, &holder) == 0 && holder.l_type != F_UNLCK && holder.l_pid > 0;
  throw Error(
      Errc::kUsage,
      fmt::format("rank {} is in the job already{}. A process that a rank starts is not a rank: this one (pid {}) "
                  "must not call init() before the other one has called shutdown(), or needs an environment "
                  "without RUNJOB_RENDEZVOUS, in which it is a job of its own",
                  rank, is_known ? fmt::format(": it is process {}", holder.l_pid) : "", ::getpid()));
}

}  // namespace runjob::runtime
