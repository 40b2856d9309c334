#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>

#include "base/unique_handle.hpp"
#include "launcher/channel/channel.hpp"

namespace runjob {

/// A channel over two descriptors of this process: ends of two pipes, or one socket twice.
/// Owner  owns both and makes them non-blocking, so no other code may use their open file descriptions.
class FdChannel : public Channel {
 public:
  FdChannel(boost::asio::any_io_executor executor, UniqueFd input, UniqueFd output);

  boost::asio::awaitable<std::size_t> read_some(boost::asio::mutable_buffer buffer) override;
  boost::asio::awaitable<void> write(std::vector<boost::asio::const_buffer> buffers) override;
  void close() override;

 private:
  boost::asio::posix::stream_descriptor input_;
  boost::asio::posix::stream_descriptor output_;
};

}  // namespace runjob
