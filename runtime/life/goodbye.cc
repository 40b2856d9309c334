#include "runtime/life/goodbye.hpp"

#include <fmt/format.h>

namespace runjob::runtime {
namespace {

constexpr std::string_view kShutdownText = " called shutdown()", kProgramEndText = " ended its program";

}  // namespace

Status goodbye_reason(std::string_view rank, Goodbye how) {
  return {Errc::kAborted, fmt::format("{}{}", rank, how == Goodbye::kShutdown ? kShutdownText : kProgramEndText)};
}

bool is_goodbye(const Status& reason) {
  const std::string& text = reason.message();
  return reason.code() == Errc::kAborted && (text.ends_with(kShutdownText) || text.ends_with(kProgramEndText));
}

Status with_operation(const Status& reason, std::string_view self, std::string_view operation) {
  const std::string& text = reason.message();
  for (const std::string_view how : {kShutdownText, kProgramEndText}) {
    if (reason.code() != Errc::kAborted || !text.ends_with(how) || text == fmt::format("{}{}", self, how)) continue;
    return {reason.code(),
            fmt::format("{} while {} waits in {}: do all ranks take the same number of steps? see join()", text, self,
                        operation)};
  }
  return reason;
}

}  // namespace runjob::runtime
