/// Feeds any bytes to the parser of PMI's messages: what it takes, it takes again when it is written out.
#include <algorithm>
#include <string_view>

#include "base/error.hpp"
#include "runtime/mpi_start/hexadecimal.hpp"
#include "runtime/mpi_start/pmi_message.hpp"
#include "tests/fuzz.hpp"

using namespace runjob;
using namespace runjob::runtime;

void fuzz(std::string_view text) {
  require(from_hexadecimal(to_hexadecimal(text)) == text);
  try {
    const PmiMessage message = parse_pmi_message(text);
    require(parse_pmi_message(to_text(message)) == message);
  } catch (const Error&) {
  }
  try {
    static_cast<void>(from_hexadecimal(text));
  } catch (const Error&) {
  }
}
