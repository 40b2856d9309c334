#include "runtime/mpi_start/exchange_meeting.hpp"

#include <utility>

#include <fmt/format.h>

#include "base/error.hpp"
#include "runtime/mpi_start/store_meeting.hpp"

namespace runjob::runtime {

Exchange counted(Exchange exchange, std::size_t ranks, std::string what) {
  return [exchange = std::move(exchange), ranks, what = std::move(what)](const std::string& own) {
    std::vector<std::string> texts = exchange(own);
    if (texts.size() == ranks) return texts;
    throw Error(Errc::kProtocol,
                fmt::format("{}: the exchange gave {} answers among {} ranks", what, texts.size(), ranks));
  };
}

ExchangeMeeting::ExchangeMeeting(int rank, int size, std::string host, Exchange exchange)
    : rank_(rank),
      host_(std::move(host)),
      exchange_(counted(std::move(exchange), static_cast<std::size_t>(size), "init()")) {
  if (rank < 0 || rank >= size) throw Error(Errc::kInvalidArgument, fmt::format("init(): rank {} of {}", rank, size));
}

rendezvous::JoinReply ExchangeMeeting::join(std::optional<Milliseconds> timeout) {
  const Milliseconds limit = timeout.value_or(kStoreTimeout);
  return place_in_store(rank_, gather("", own_host_text(host_), limit), limit);
}

std::vector<std::string> ExchangeMeeting::gather(const std::string& /*name*/, const std::string& blob,
                                                 Milliseconds /*timeout*/) {
  return exchange_(blob);
}

}  // namespace runjob::runtime
