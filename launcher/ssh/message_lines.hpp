#pragma once

#include <functional>
#include <string>
#include <string_view>

namespace runjob {

/// Cuts a stream of text into lines and hands each on without its end. A longer line than 4096 bytes is cut.
class MessageLines {
 public:
  MessageLines() = default;
  explicit MessageLines(std::function<void(std::string_view)> on_line) : on_line_(std::move(on_line)) {}

  void add(std::string_view text);

  /// The last line that was handed on, "" when there was none.
  const std::string& last() const { return last_; }

  /// Hands on what has no end yet.
  void finish();

 private:
  std::function<void(std::string_view)> on_line_;
  std::string partial_;
  std::string last_;
};

}  // namespace runjob
