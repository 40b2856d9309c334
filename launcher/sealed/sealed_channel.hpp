#pragma once

#include <memory>
#include <string>

#include "launcher/channel.hpp"
#include "launcher/sealed/sealed_records.hpp"

namespace runjob {

/// A channel whose bytes only the other end can read or write, over one that anybody may listen to.
/// Errors  as Channel; read_some() also throws Error(kAuth) for bytes that the other end has not sealed.
class SealedChannel : public Channel {
 public:
  /// `received`: what has been read of `carrier` already.
  SealedChannel(std::unique_ptr<Channel> carrier, const SealKeys& keys, std::string received = {});

  boost::asio::awaitable<std::size_t> read_some(boost::asio::mutable_buffer buffer) override;
  boost::asio::awaitable<void> write(std::vector<boost::asio::const_buffer> buffers) override;
  void close() override { carrier_->close(); }

  /// Waits for the first sealed record, which shows that the other end is there and holds the key; then whatever it holds
  /// is read first. Errors  as read_some(); Error(kConnect) at the end of the stream.
  boost::asio::awaitable<void> confirm();

 private:
  boost::asio::awaitable<bool> receive();

  std::unique_ptr<Channel> carrier_;
  Sealer sealer_;
  Opener opener_;
  std::string plain_;         // opened, not yet read
  std::size_t plain_at_ = 0;  // read up to here
  std::unique_ptr<char[]> buffer_;
};

}  // namespace runjob
