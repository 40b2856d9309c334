/// Feeds any bytes to the readers of what ranks send each other for control: requests, reports and decisions about the
/// job's life. A message that was read is the same when it is written and read again. The first byte chooses the
/// reader.
#include <string>
#include <string_view>

#include "base/error.hpp"
#include "runtime/life/life_message.hpp"
#include "runtime/negotiation/control_message.hpp"
#include "tests/fuzz.hpp"

using namespace runjob;
using namespace runjob::runtime;

namespace {

template <class Decode>
void check(std::string_view bytes, Decode decode) {
  std::string once;
  try {
    once = encode(decode(bytes));
  } catch (const Error& error) {
    require(error.code() == Errc::kProtocol);
    return;
  }
  require(encode(decode(once)) == once);
}

}  // namespace

void fuzz(std::string_view input) {
  if (input.empty()) return;
  const std::string_view bytes = input.substr(1);
  switch (static_cast<unsigned char>(input[0]) % 3) {
    case 0:
      check(bytes, decode_request);
      break;
    case 1:
      check(bytes, decode_life_report);
      break;
    default:
      check(bytes, decode_life_decision);
  }
}
