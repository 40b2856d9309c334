#include "launcher/sealed_channel/sealed_channel.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/error.hpp"

namespace runjob {
namespace {

namespace asio = boost::asio;

constexpr std::size_t kBufferBytes = 256 * 1024;

}  // namespace

SealedChannel::SealedChannel(std::unique_ptr<Channel> carrier, const SealKeys& keys, std::string received)
    : carrier_(std::move(carrier)),
      sealer_(keys.sending),
      opener_(keys.receiving),
      buffer_(std::make_unique_for_overwrite<char[]>(kBufferBytes)) {
  opener_.feed(received, plain_);
}

/// False at the end of the stream.
asio::awaitable<bool> SealedChannel::receive() {
  const std::size_t bytes = co_await carrier_->read_some(asio::mutable_buffer(buffer_.get(), kBufferBytes));
  if (bytes == 0) co_return false;
  opener_.feed({buffer_.get(), bytes}, plain_);
  co_return true;
}

asio::awaitable<void> SealedChannel::confirm() {
  while (opener_.records() == 0) {
    const bool more = co_await receive();
    if (!more) throw Error(Errc::kConnect, "it hung up before it had shown that it holds the job's key");
  }
}

asio::awaitable<std::size_t> SealedChannel::read_some(asio::mutable_buffer buffer) {
  while (plain_at_ == plain_.size()) {
    plain_.clear();
    plain_at_ = 0;
    const bool more = co_await receive();
    if (!more) co_return 0;
  }
  const std::size_t bytes = std::min(buffer.size(), plain_.size() - plain_at_);
  std::memcpy(buffer.data(), plain_.data() + plain_at_, bytes);
  plain_at_ += bytes;
  co_return bytes;
}

asio::awaitable<void> SealedChannel::write(std::vector<asio::const_buffer> buffers) {
  std::string plain;
  for (const asio::const_buffer& buffer : buffers) plain.append(static_cast<const char*>(buffer.data()), buffer.size());
  std::string sealed;
  sealer_.seal(plain, sealed);
  std::vector<asio::const_buffer> out{asio::buffer(sealed)};
  co_await carrier_->write(std::move(out));
}

}  // namespace runjob
