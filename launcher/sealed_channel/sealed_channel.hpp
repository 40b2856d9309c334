#pragma once

#include <memory>
#include <string>

#include "launcher/channel/channel.hpp"
#include "sealed/sealed_records.hpp"

namespace runjob {

/// A channel whose bytes only the other end can read or write, over a carrier that others may observe.
/// Owner   of the carrier.
/// Errors  as Channel; read_some() also throws Error(kAuth) for bytes that the other end has not sealed.
class SealedChannel : public Channel {
 public:
  /// `received` are the bytes that were already read from `carrier`.
  SealedChannel(std::unique_ptr<Channel> carrier, const SealKeys& keys, std::string received = {});

  boost::asio::awaitable<std::size_t> read_some(boost::asio::mutable_buffer buffer) override;
  boost::asio::awaitable<void> write(std::vector<boost::asio::const_buffer> buffers) override;
  void close() override { carrier_->close(); }

  /// Waits for the first sealed record, which proves that the other end is live and has the key. Its contents are read
  /// first.
  /// Errors  as read_some(); Error(kConnect) at the end of the stream.
  boost::asio::awaitable<void> confirm();

 private:
  boost::asio::awaitable<bool> receive();

  std::unique_ptr<Channel> carrier_;
  Sealer sealer_;
  Opener opener_;
  std::string plain_;         // opened, but not yet read
  std::size_t plain_at_ = 0;  // position up to which it was read
  std::unique_ptr<char[]> buffer_;
};

}  // namespace runjob
