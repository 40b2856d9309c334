#include "launcher/agent/input_pipe.hpp"

#include <fcntl.h>
#include <sys/ioctl.h>

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <fmt/format.h>

#include "launcher/channel/messages.hpp"

namespace runjob {
namespace asio = boost::asio;

InputPipe::InputPipe(asio::any_io_executor executor, UniqueFd writer, int process, FrameWriter<ToLauncher>& frames)
    : pipe_(executor, writer.release()),
      wake_up_(executor, asio::steady_timer::time_point::max()),
      process_(process),
      frames_(frames) {}

asio::awaitable<void> InputPipe::run() {
  while (!closed_) {
    if (queue_.empty()) {
      const auto [cancelled] = co_await wake_up_.async_wait(asio::as_tuple(asio::use_awaitable));
      static_cast<void>(cancelled);
      continue;
    }
    const std::string bytes = std::move(queue_.front());
    queue_.pop_front();
    if (bytes.empty()) {
      keep_reader();
      break;
    }
    for (asio::const_buffer rest = asio::buffer(bytes); rest.size() > 0 && !broken_;) {
      const auto [error, count] = co_await pipe_.async_write_some(rest, asio::as_tuple(asio::use_awaitable));
      written_ += static_cast<std::int64_t>(count);
      rest += count;
      if (error) broken_ = true;
    }
    frames_.send_control(ToLauncher::kInputCredit, process_, encode(Credit{static_cast<std::int64_t>(bytes.size())}));
  }
  close();
}

/// The process sees the end of its input only when the writing end is closed, which could be asked until then.
void InputPipe::keep_reader() {
  const std::string path = fmt::format("/proc/self/fd/{}", pipe_.native_handle());
  reader_ = UniqueFd(::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
}

std::int64_t InputPipe::bytes_read() {
  int unread = 0;
  const int end = pipe_.is_open() ? pipe_.native_handle() : reader_.get();
  if (::ioctl(end, FIONREAD, &unread) != 0) return written_;
  return written_ - unread;
}

void InputPipe::push(std::string bytes) {
  queue_.push_back(std::move(bytes));
  wake_up_.cancel();
}

void InputPipe::close() {
  closed_ = true;
  boost::system::error_code ignored;
  pipe_.close(ignored);
  wake_up_.cancel();
}

}  // namespace runjob
