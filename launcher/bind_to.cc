#include "launcher/bind_to.hpp"

#include <fmt/format.h>

#include "base/error.hpp"

namespace runjob {
namespace {

constexpr BindTo kAll[] = {BindTo::kNone, BindTo::kCore, BindTo::kNuma, BindTo::kSocket};

}  // namespace

BindTo parse_bind_to(std::string_view text, std::string_view what) {
  for (const BindTo each : kAll) {
    if (text == to_string(each)) return each;
  }
  throw Error(Errc::kUsage, fmt::format("{}: '{}' is not none, core, numa or socket", what, text));
}

std::string_view to_string(BindTo bind_to) {
  switch (bind_to) {
    case BindTo::kNone:
      return "none";
    case BindTo::kCore:
      return "core";
    case BindTo::kNuma:
      return "numa";
    case BindTo::kSocket:
      return "socket";
  }
  return "none";
}

}  // namespace runjob
