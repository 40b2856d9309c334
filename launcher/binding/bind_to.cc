#include "launcher/binding/bind_to.hpp"

#include <fmt/format.h>

#include "base/error.hpp"

namespace runjob {
namespace {

constexpr BindTo kAll[] = {BindTo::kNone,   BindTo::kCore,       BindTo::kNuma,
                           BindTo::kSocket, BindTo::kSharedCore, BindTo::kGpu};

}  // namespace

BindTo parse_bind_to(std::string_view text, std::string_view what) {
  const bool is_overload = text.ends_with(":overload-allowed") || text.ends_with(":overload");
  const std::string_view unit = is_overload ? text.substr(0, text.rfind(':')) : text;
  if (is_overload && unit == "core") return BindTo::kSharedCore;
  for (const BindTo each : kAll) {
    if (unit == to_string(each)) return each;
  }
  throw Error(Errc::kUsage, fmt::format("{}: '{}' is not none, core, numa, socket or gpu", what, text));
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
    case BindTo::kSharedCore:
      return "core:overload-allowed";
    case BindTo::kGpu:
      return "gpu";
  }
  return "none";
}

}  // namespace runjob
