#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <sys/types.h>
#include <tuple>

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/steady_timer.hpp>

#include "launcher/elastic/host_source.hpp"

namespace runjob {

/// The hostfile of an elastic job: when it is edited while the job runs, the hosts change. It is read when it has been
/// closed or renamed into place, and then unchanged for two seconds. On a network's file system, which does not report
/// changes of other hosts, it is looked at every two seconds. A pipe or another special file is never watched.
/// Owner    as HostSource: the supervisor.
/// Threads  the executor's one thread, which also reads the file.
/// Errors   none is thrown. A file that cannot be read, that others may write to, that belongs to another user than at
///          the start of the job, or that is not valid as a whole, is a warning, and the hosts stay as they are. The
///          same warning is not repeated until the file was read.
class HostfileSource : public HostSource {
 public:
  /// `path`: absolute. `owner`: to whom the file belonged when the job was started; files of this user and of root are
  /// read as well. `changes` outlives this object.
  HostfileSource(boost::asio::any_io_executor executor, std::string path, ::uid_t owner, HostChanges& changes);

  void start() override;
  void stop() override;

 private:
  /// Device, file, size and time of the last change of content, owner or mode; all 0 for no file.
  using Version = std::tuple<std::uint64_t, std::uint64_t, std::int64_t, std::int64_t, std::int64_t>;

  Version version() const;
  void watch_folder();
  void read_events();
  void on_events(std::size_t bytes);
  void look();
  void wait();
  void read();

  const std::string path_;
  const ::uid_t owner_;
  HostChanges& changes_;
  boost::asio::posix::stream_descriptor events_;
  boost::asio::steady_timer timer_;
  alignas(8) std::array<char, 4096> buffer_{};
  Version seen_{};
  std::string complaint_;  // the last warning; "" after the file was read
  bool changed_ = false;   // since it was read
  bool open_ = false;      // a process writes it
  bool polled_ = false;
};

}  // namespace runjob
