#include "launcher/channel/fd_channel.hpp"

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/error.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>

#include "base/error.hpp"

namespace runjob {
namespace asio = boost::asio;

FdChannel::FdChannel(asio::any_io_executor executor, UniqueFd input, UniqueFd output)
    : input_(executor, input.release()), output_(executor, output.release()) {}

asio::awaitable<std::size_t> FdChannel::read_some(asio::mutable_buffer buffer) {
  const auto [error, bytes] = co_await input_.async_read_some(buffer, asio::as_tuple(asio::use_awaitable));
  // A peer that was killed with our bytes unread resets the socket: the end of the stream all the same.
  if (error == asio::error::eof || error == asio::error::connection_reset) co_return 0;
  if (error) throw Error(Errc::kConnect, "reading from the channel: " + error.message());
  co_return bytes;
}

asio::awaitable<void> FdChannel::write(std::vector<asio::const_buffer> buffers) {
  const auto [error, bytes] = co_await asio::async_write(output_, buffers, asio::as_tuple(asio::use_awaitable));
  static_cast<void>(bytes);
  if (error) throw Error(Errc::kConnect, "writing to the channel: " + error.message());
}

void FdChannel::close() {
  boost::system::error_code ignored;
  input_.close(ignored);
  output_.close(ignored);
}

}  // namespace runjob
