#include "launcher/agent/input_pipe.hpp"

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>

#include "launcher/channel/messages.hpp"

namespace runjob {
namespace asio = boost::asio;

InputPipe::InputPipe(asio::any_io_executor executor, UniqueFd writer, int rank, FrameWriter<ToLauncher>& frames)
    : pipe_(executor, writer.release()),
      wake_up_(executor, asio::steady_timer::time_point::max()),
      rank_(rank),
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
    if (bytes.empty()) break;
    if (!broken_) {
      const asio::const_buffer buffer = asio::buffer(bytes);
      const auto [error, written] = co_await asio::async_write(pipe_, buffer, asio::as_tuple(asio::use_awaitable));
      static_cast<void>(written);
      if (error) broken_ = true;
    }
    frames_.send_control(ToLauncher::kInputCredit, rank_, encode(Credit{static_cast<std::int64_t>(bytes.size())}));
  }
  close();
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
