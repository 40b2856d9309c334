#pragma once

#include <string>
#include <string_view>

#include "launcher/frame.hpp"

namespace runjob {

/// What stands before each line of the ranks' output. docs/manual.md shows the forms.
struct TagStyle {
  bool rank = true;
  bool stream = true;
  bool host = false;
  bool time = false;  ///< of the source, in microseconds

  bool operator==(const TagStyle&) const = default;
  /// Whether lines stand as the ranks wrote them.
  bool none() const { return *this == TagStyle{false, false, false, false}; }
};

/// "none", or parts separated by commas, in any order: rank, stream, host, time.
/// Errors  Error(kUsage) naming `what`.
TagStyle parse_tag_style(std::string_view text, std::string_view what);

/// "[3]<stdout>:", horovodrun's, or "[3 s1]<stderr>:", "[s1]:", "<stdout>:"; "" when none of rank, stream and host is asked
/// for. `coloured`: in the rank's colour.
std::string output_tag(const TagStyle& style, int rank, std::string_view host, Stream stream, bool coloured);

}  // namespace runjob
