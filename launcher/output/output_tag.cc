#include "launcher/output/output_tag.hpp"

#include <fmt/format.h>

#include "base/error.hpp"

namespace runjob {
namespace {

/// Those that can be read on white and on black; red is left for errors.
constexpr int kColours[] = {36, 33, 35, 32, 34, 96};  // ECMA-48, SGR

bool* part_of(TagStyle& style, std::string_view name) {
  if (name == "rank") return &style.rank;
  if (name == "stream") return &style.stream;
  if (name == "host") return &style.host;
  if (name == "time") return &style.time;
  return nullptr;
}

}  // namespace

TagStyle parse_tag_style(std::string_view text, std::string_view what) {
  TagStyle style{false, false, false, false};
  if (text == "none") return style;
  for (std::string_view rest = text;;) {
    const std::size_t comma = rest.find(',');
    bool* const part = part_of(style, rest.substr(0, comma));
    if (part == nullptr)
      throw Error(Errc::kUsage,
                  fmt::format("{}: '{}' is neither none nor a list of rank, stream, host and time", what, text));
    *part = true;
    if (comma == std::string_view::npos) return style;
    rest.remove_prefix(comma + 1);
  }
}

std::string output_tag(const TagStyle& style, OutputTime::Format time, int rank, std::string_view host, Stream stream,
                       bool coloured) {
  std::string tag;
  if (style.rank || style.host) {
    tag = fmt::format("[{}{}{}]", style.rank ? std::to_string(rank) : "", style.rank && style.host ? " " : "",
                      style.host ? host : "");
  }
  if (style.stream) tag += stream == Stream::kStderr ? "<stderr>" : "<stdout>";
  if (tag.empty()) return time == OutputTime::Format::kSeconds ? ":" : "";
  tag += ":";
  const int colour = kColours[static_cast<std::size_t>(rank) % std::size(kColours)];
  return coloured ? fmt::format("\x1b[{}m{}\x1b[0m", colour, tag) : tag;
}

}  // namespace runjob
