#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cli/options/settings.hpp"

namespace runjob {

/// One option's value on its way into the JobSpec, with the name that messages give it.
struct SettingValue {
  std::string text;
  std::string place;
};

/// Reads settings by option name, as the type that the option has. A value type over `settings`, which outlives it.
/// Errors  kUsage naming the option, variable or file that gave the value.
class SettingReader {
 public:
  /// `directory`: absolute; where relative paths begin. "" if it was deleted.
  SettingReader(const Settings& settings, std::string directory)
      : settings_(settings), directory_(std::move(directory)) {}

  /// nullopt when nobody gave the option, here and below.
  std::optional<SettingValue> find(std::string_view option) const;

  bool flag(std::string_view option) const;

  /// A path made absolute; "" is an error.
  std::optional<SettingValue> path(std::string_view option) const;

  /// Every value of a repeatable option, in the order in which they were given.
  std::vector<SettingValue> all(std::string_view option) const;

  /// The path that `path` has as its text, made absolute; "" is an error.
  std::string absolute(const SettingValue& path) const;

  /// A path where a file can be written.
  std::optional<std::string> writable_file(std::string_view option) const;

  std::optional<std::chrono::milliseconds> duration(std::string_view option) const;

  /// One that is not zero. `purpose`: what there would be no time to do.
  std::optional<std::chrono::milliseconds> positive_duration(std::string_view option, std::string_view purpose) const;

 private:
  const Settings& settings_;
  std::string directory_;
};

}  // namespace runjob
