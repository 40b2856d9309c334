#pragma once

#include <string>
#include <string_view>

#include "launcher/channel/frame.hpp"
#include "launcher/output/output_time.hpp"

namespace runjob {

/// The parts of the tag that precedes each line of the ranks' output. docs/manual.md shows the forms.
struct TagStyle {
  bool rank = true;
  bool stream = true;
  bool host = false;
  bool time = false;  ///< the source's time, in microseconds

  bool operator==(const TagStyle&) const = default;
  /// True if lines are shown as the ranks wrote them.
  bool none() const { return *this == TagStyle{false, false, false, false}; }
};

/// Parses "none", or parts separated by commas, in any order: rank, stream, host, time.
/// Errors  Error(kUsage) naming `what`.
TagStyle parse_tag_style(std::string_view text, std::string_view what);

/// The tag: "[3]<stdout>:", which is horovodrun's, or "[3 s1]<stderr>:", "[s1]:", "<stdout>:". Without rank, stream and
/// host it is "", or ":" where it ends a time (OutputTime::Format::kSeconds). With `coloured` it has the rank's colour.
/// `time`: the format of the time that precedes the tag.
std::string output_tag(const TagStyle& style, OutputTime::Format time, int rank, std::string_view host, Stream stream,
                       bool coloured);

}  // namespace runjob
