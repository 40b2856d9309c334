/// Feeds any bytes to the parser of PMI's messages: what it takes, it takes again when it is written out.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "base/error.hpp"
#include "runtime/mpi_start/hexadecimal.hpp"
#include "runtime/mpi_start/pmi_message.hpp"

using namespace runjob;
using namespace runjob::runtime;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  if (from_hexadecimal(to_hexadecimal(text)) != text) std::abort();
  try {
    const PmiMessage message = parse_pmi_message(text);
    if (parse_pmi_message(to_text(message)) != message) std::abort();
  } catch (const Error&) {
  }
  try {
    static_cast<void>(from_hexadecimal(text));
  } catch (const Error&) {
  }
  return 0;
}
