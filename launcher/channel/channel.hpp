#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include <boost/asio/awaitable.hpp>
#include <boost/asio/buffer.hpp>

namespace runjob {

/// The byte stream between the launcher and one agent, independent of its carrier.
/// Threads  the loop's one thread; one read and one write at a time.
/// Errors   read_some() and write() throw Error(kConnect) when the stream breaks. After close() both end soon.
class Channel {
 public:
  virtual ~Channel() = default;

  /// Reads at least one byte; 0 at the end of the stream.
  virtual boost::asio::awaitable<std::size_t> read_some(boost::asio::mutable_buffer buffer) = 0;

  /// Writes all of `buffers`, which are lent until it returns.
  virtual boost::asio::awaitable<void> write(std::vector<boost::asio::const_buffer> buffers) = 0;

  /// Ends the stream in both directions; never waits.
  virtual void close() = 0;

  /// The last line that arrived beside the stream, from its carrier or from the far end; often the reason why the
  /// stream broke. "" if there was none.
  virtual std::string last_message() const { return {}; }
};

}  // namespace runjob
