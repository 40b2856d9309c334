#include "runtime/mpi_start/exchange_meeting.hpp"

#include <utility>

#include <fmt/format.h>

#include "base/error.hpp"
#include "runtime/mpi_start/store_meeting.hpp"

namespace runjob::runtime {

ExchangeMeeting::ExchangeMeeting(int rank, int size, std::string host, Exchange exchange)
    : rank_(rank), size_(static_cast<std::size_t>(size)), host_(std::move(host)), exchange_(std::move(exchange)) {
  if (rank < 0 || rank >= size) throw Error(Errc::kInvalidArgument, fmt::format("init(): rank {} of {}", rank, size));
}

rendezvous::JoinReply ExchangeMeeting::join(std::optional<Milliseconds> timeout) {
  const Milliseconds limit = timeout.value_or(kStoreTimeout);
  return place_in_store(rank_, gather("", own_host_text(host_), limit), limit);
}

std::vector<std::string> ExchangeMeeting::gather(const std::string& /*name*/, const std::string& blob,
                                                 Milliseconds /*timeout*/) {
  std::vector<std::string> blobs = exchange_(blob);
  if (blobs.size() == size_) return blobs;
  throw Error(Errc::kProtocol, fmt::format("init(): the exchange gave {} answers among {} ranks", blobs.size(), size_));
}

}  // namespace runjob::runtime
