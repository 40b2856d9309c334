/// Feeds any bytes to the readers of what ranks learn about each other when they meet, through the rendezvous, PMI or
/// PMIx, and of what hosts send each other in a round. The first byte chooses: 'b' a rank's blob, 'o' the address of
/// its backend, 's' the part of it about shared memory, 'n' the offer of a GPU for NCCL, 'r' a round's block of messages,
/// whose number is the second byte. What was read is the same when it is written and read again.
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.hpp"
#include "runtime/collectives/hierarchical/host_offer.hpp"
#include "runtime/collectives/hierarchical/rounds/message_block.hpp"
#include "runtime/collectives/nccl/offer.hpp"
#include "runtime/collectives/shm/memory/sharing.hpp"
#include "runtime/job/bootstrap_blob.hpp"
#include "tests/fuzz.hpp"
#include "tests/runtime/collectives/hierarchical/rounds/whole_block.hpp"

using namespace runjob;
using namespace runjob::runtime;

namespace {

template <class Decode>
void check(const std::string& bytes, Decode decode) {
  try {
    const auto value = decode(bytes);
    require(decode(encode(value)) == value);
  } catch (const Error& error) {
    require(error.code() == Errc::kProtocol && *error.what() != '\0');
  }
}

/// Texts that do not fit are cut when an offer is written, so that one of a stranger may differ from what it becomes.
void check_gpu(const std::string& bytes) {
  try {
    const nccl::Offer offer = nccl::decode_offer(bytes, 1);
    require(offer.rank == 1 && offer.vendor != nullptr);
    static_cast<void>(nccl::objection(std::vector<nccl::Offer>{offer, offer}));
  } catch (const Error& error) {
    require(error.code() == Errc::kProtocol);
  }
}

void check_block(std::string_view bytes, std::size_t count) {
  constexpr std::size_t kMostBytes = 1000;
  const std::string_view whole = bytes;
  std::vector<RoundMessage> messages(count);
  std::size_t put = 0;
  try {
    const bool with_ages = take_block(bytes, count, kMostBytes, [&](std::size_t index, const RoundMessage& message) {
      require(index < count && message.size() <= kMostBytes);
      for (const auto& part : {message.bytes, message.rest}) {
        const auto* const begin = reinterpret_cast<const char*>(part.data());
        require(part.empty() || (begin >= whole.data() && begin + part.size() <= whole.data() + whole.size()));
      }
      messages[index] = message;
      ++put;
    });
    require(put == count && bytes.size() <= whole.size());
    std::string again = whole_block(messages, with_ages);
    std::string_view rest = again;
    take_block(rest, count, kMostBytes, [&](std::size_t index, const RoundMessage& message) {
      const RoundMessage& before = messages[index];
      require(message.tag == before.tag && message.size() == before.size() && message.unread == before.unread);
    });
    require(rest.empty());
    if (has_ages(again)) add_age(again.data(), count, 17);
  } catch (const Error& error) {
    require(error.code() == Errc::kProtocol);
  }
}

}  // namespace

void fuzz(std::string_view bytes) {
  if (bytes.size() < 2) return;
  switch (bytes[0]) {
    case 'b':
      check(std::string(bytes.substr(1)),
            [](const std::string& blob) { return decode_bootstrap_blob(blob, "rank 1"); });
      break;
    case 'o':
      check(std::string(bytes.substr(1)), [](const std::string& offer) { return decode_host_offer(offer, 1); });
      static_cast<void>(is_host_offer(std::string(bytes.substr(1))));
      break;
    case 's':
      check(std::string(bytes.substr(1)), [](const std::string& offer) { return decode_sharing_offer(offer, 1); });
      break;
    case 'n':
      check_gpu(std::string(bytes.substr(1)));
      break;
    case 'r':
      check_block(bytes.substr(2), static_cast<unsigned char>(bytes[1]) % 20);
      break;
    default:
      break;
  }
}
