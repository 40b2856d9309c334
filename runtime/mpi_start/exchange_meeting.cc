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

namespace {

/// What a rank's text begins with, so that two processes of one rank and answers in another order are noticed.
std::string numbered(std::size_t rank) {
  return fmt::format("{} ", rank);
}

}  // namespace

rendezvous::JoinReply ExchangeMeeting::join(std::optional<Milliseconds> timeout) {
  const Milliseconds limit = timeout.value_or(kStoreTimeout);
  return place_in_store(rank_, gather("", own_host_text(host_), limit), limit);
}

std::vector<std::string> ExchangeMeeting::gather(const std::string& /*name*/, const std::string& blob,
                                                 Milliseconds /*timeout*/) {
  std::vector<std::string> texts = exchange_(numbered(static_cast<std::size_t>(rank_)) + blob);
  for (std::size_t rank = 0; rank < texts.size(); ++rank) {
    const std::string number = numbered(rank);
    if (!texts[rank].starts_with(number)) {
      throw Error(Errc::kProtocol,
                  fmt::format("init(): the exchange gave rank {} a text as that of rank {} which this rank did not "
                              "send: each process needs a rank of its own, and the texts of all in their order",
                              rank_, rank));
    }
    texts[rank].erase(0, number.size());
  }
  return texts;
}

}  // namespace runjob::runtime
