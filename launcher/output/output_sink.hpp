#pragma once

#include <functional>
#include <string>
#include <sys/types.h>

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>

namespace runjob {

/// Writes text to one of this process's standard descriptors without ever blocking the loop: what the reader does not
/// take at once waits here, and the loop goes on. A terminal or pipe is opened anew through /proc/self/fd for that,
/// because O_NONBLOCK on the inherited descriptor would change it for every process that shares it (our shell, for
/// one). Where that is not allowed, writes block. A socket cannot be opened anew, but its sends do not wait.
/// Threads  the loop's one thread.
class OutputSink {
 public:
  /// `descriptor` is lent.
  OutputSink(boost::asio::any_io_executor executor, int descriptor);

  /// Text to be written, appended to by the caller, then flush().
  std::string& buffer() { return buffer_; }

  /// Writes what can be written now and arranges for the rest.
  void flush();

  /// Writes everything, as soon as the reader takes it. Blocks.
  void drain();

  std::size_t backlog() const { return buffer_.size() - written_; }

  /// The error of the write that failed; 0 if none has. The text is dropped from then on.
  int error() const { return error_; }

  /// Called when the backlog has become shorter, from the loop.
  std::function<void()> on_progress;

 private:
  ssize_t write_once() const;
  void write_some();
  void wait_until_writable();

  boost::asio::posix::stream_descriptor own_;  // the descriptor opened anew; an epoll that watches a socket; or closed
  int descriptor_;                             // what is written to
  bool is_socket_ = false;
  std::string buffer_;
  std::size_t written_ = 0;  // of buffer_
  bool waiting_ = false;
  int error_ = 0;  // errno
};

}  // namespace runjob
