#include "launcher/host_sources/hostfile_source.hpp"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <iterator>
#include <linux/magic.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>
#include <utility>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/log.hpp"
#include "base/screen_text.hpp"
#include "base/unique_handle.hpp"
#include "hostfile/read_hostfile.hpp"

namespace runjob {
namespace {

constexpr auto kUnchanged = std::chrono::seconds(2);

/// File systems over a network, on which inotify(7) sees only this host's changes.
/// Source  statfs(2), linux/magic.h; of those that are not in the kernel, their own headers.
bool is_on_a_network(const std::string& path) {
  struct statfs system {};
  if (::statfs(path.c_str(), &system) != 0) return false;
  constexpr std::uint32_t kLustre = 0x0BD00BD0, kGpfs = 0x47504653;
  constexpr std::uint32_t kTypes[] = {NFS_SUPER_MAGIC,
                                      SMB_SUPER_MAGIC,
                                      SMB2_SUPER_MAGIC,
                                      CIFS_SUPER_MAGIC,
                                      FUSE_SUPER_MAGIC,
                                      CEPH_SUPER_MAGIC,
                                      V9FS_MAGIC,
                                      AFS_SUPER_MAGIC,
                                      AFS_FS_MAGIC,
                                      kLustre,
                                      kGpfs};
  return std::find(std::begin(kTypes), std::end(kTypes), static_cast<std::uint32_t>(system.f_type)) != std::end(kTypes);
}

}  // namespace

HostfileSource::HostfileSource(boost::asio::any_io_executor executor, std::string path, ::uid_t owner,
                               HostChanges& changes)
    : path_(std::move(path)), owner_(owner), changes_(changes), events_(executor), timer_(executor) {
  seen_ = version();
}

void HostfileSource::start() {
  struct stat status {};
  if (::stat(path_.c_str(), &status) == 0 && !S_ISREG(status.st_mode)) return;
  polled_ = is_on_a_network(path_);
  if (!polled_) watch_folder();
  look();  // it may have changed since it was read
  if (polled_) wait();
}

void HostfileSource::stop() {
  boost::system::error_code ignored;
  events_.close(ignored);
  timer_.cancel();
  polled_ = false;
}

HostfileSource::Version HostfileSource::version() const {
  struct stat status {};
  if (::stat(path_.c_str(), &status) != 0) return {};
  return {status.st_dev, status.st_ino, status.st_size, status.st_ctim.tv_sec, status.st_ctim.tv_nsec};
}

/// Editors put a new file in the old one's place, so the folder is watched and not the file.
void HostfileSource::watch_folder() {
  UniqueFd watch(::inotify_init1(IN_NONBLOCK | IN_CLOEXEC));
  const std::string folder = std::filesystem::path(path_).parent_path();
  constexpr std::uint32_t kEvents = IN_MODIFY | IN_CLOSE_WRITE | IN_ATTRIB | IN_MOVED_TO | IN_MOVED_FROM | IN_DELETE;
  if (!watch || ::inotify_add_watch(watch.get(), folder.c_str(), kEvents) < 0) {
    polled_ = true;  // no watch is left
    return;
  }
  events_.assign(watch.release());
  read_events();
}

void HostfileSource::read_events() {
  events_.async_read_some(boost::asio::buffer(buffer_), [this](boost::system::error_code error, std::size_t bytes) {
    if (error) return;
    on_events(bytes);
    read_events();
  });
}

void HostfileSource::on_events(std::size_t bytes) {
  const std::string name = std::filesystem::path(path_).filename();
  for (std::size_t place = 0; place + sizeof(inotify_event) <= bytes;) {
    inotify_event event{};
    std::memcpy(&event, buffer_.data() + place, sizeof event);
    const char* of = event.len > 0 ? buffer_.data() + place + sizeof event : "";
    if (name == of && (event.mask & IN_ATTRIB) == 0) open_ = (event.mask & IN_MODIFY) != 0;
    place += sizeof event + event.len;
  }
  look();
}

void HostfileSource::look() {
  const Version now = version();
  if (now == seen_) {
    if (changed_ && !open_ && timer_.expiry() <= std::chrono::steady_clock::now()) wait();  // it was closed late
    return;
  }
  seen_ = now;
  changed_ = true;
  wait();
}

void HostfileSource::wait() {
  timer_.expires_after(kUnchanged);
  timer_.async_wait([this](boost::system::error_code error) {
    if (error) return;
    const Version now = version();
    if (now != std::exchange(seen_, now)) {
      changed_ = true;
      return wait();
    }
    if (changed_ && !open_) read();
    if (polled_) wait();
  });
}

void HostfileSource::read() {
  changed_ = false;
  try {
    const Hostfile file = read_hostfile(path_, path_);
    if (file.owner != owner_ && file.owner != 0 && file.owner != ::getuid())
      throw Error(Errc::kUsage,
                  fmt::format("hostfile {0} belongs to user {1}, and to user {2} when the job was started; "
                              "make a copy of your own: cp {0} COPY && mv -f COPY {0}",
                              path_, file.owner, owner_));
    log::info("the hostfile {} was read again", path_);
    changes_.set_list(file.hosts);
    complaint_.clear();
  } catch (const Error& error) {
    if (complaint_ == error.what()) return;
    complaint_ = error.what();
    log::warn("{}; the hosts stay as they are", one_line(complaint_));
  }
}

}  // namespace runjob
