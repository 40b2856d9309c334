#pragma once

#include <cstdint>
#include <string>

namespace runjob {

/// Writes the time at which output was produced, in this host's time zone. Remembers the last second: output comes in
/// bursts. Threads  one.
class OutputTime {
 public:
  enum class Format {
    kNone,          ///< ""
    kSeconds,       ///< as asctime(3), horovodrun's form, nothing after it: "Mon Jan 20 12:00:01 2020"
    kMicroseconds,  ///< RFC 3339 and a blank: "2020-01-20T12:00:01.123456+01:00 "
  };

  explicit OutputTime(Format format) : format_(format) {}

  /// `time_us`: microseconds since 1970. Valid until the next call.
  const std::string& text(std::int64_t time_us);

 private:
  void set_second(std::int64_t second);

  Format format_;
  std::int64_t second_ = -1;
  std::string before_;  // the text's parts around the microseconds
  std::string after_;
  std::string text_;
};

}  // namespace runjob
