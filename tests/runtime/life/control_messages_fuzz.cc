/// Feeds any bytes to the readers of what ranks send each other for control: requests, reports and decisions about the
/// job's life. A message that was read is the same when it is written and read again. The first byte chooses the
/// reader.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "base/error.hpp"
#include "runtime/life/life_message.hpp"
#include "runtime/negotiation/control_message.hpp"

using namespace runjob;
using namespace runjob::runtime;

namespace {

template <class Decode>
void check(std::string_view bytes, Decode decode) {
  std::string once;
  try {
    once = encode(decode(bytes));
  } catch (const Error& error) {
    if (error.code() != Errc::kProtocol) std::abort();
    return;
  }
  if (encode(decode(once)) != once) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::string_view bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
  switch (data[0] % 3) {
    case 0:
      check(bytes, decode_request);
      break;
    case 1:
      check(bytes, decode_life_report);
      break;
    default:
      check(bytes, decode_life_decision);
  }
  return 0;
}
