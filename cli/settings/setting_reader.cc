#include "cli/settings/setting_reader.hpp"

#include <filesystem>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/parse.hpp"
#include "cli/options/check_paths.hpp"

namespace runjob {

std::optional<SettingValue> SettingReader::find(std::string_view option) const {
  const auto found = settings_.find(option);
  if (found == settings_.end()) return std::nullopt;
  return SettingValue{found->second.values.back(), place_of(option, found->second)};
}

bool SettingReader::flag(std::string_view option) const {
  const auto value = find(option);
  return value && parse_bool(value->text, value->place);
}

std::optional<SettingValue> SettingReader::path(std::string_view option) const {
  auto value = find(option);
  if (value) value->text = absolute(*value);
  return value;
}

std::vector<SettingValue> SettingReader::all(std::string_view option) const {
  const auto found = settings_.find(option);
  std::vector<SettingValue> values;
  if (found == settings_.end()) return values;
  for (const std::string& text : found->second.values) values.push_back({text, place_of(option, found->second)});
  return values;
}

std::string SettingReader::absolute(const SettingValue& path) const {
  if (path.text.empty()) throw Error(Errc::kUsage, fmt::format("{}: the path is empty; give one", path.place));
  if (directory_.empty() && std::filesystem::path(path.text).is_relative()) {
    throw Error(Errc::kUsage,
                fmt::format("{}: '{}' is relative to the current directory, which was deleted; give an absolute path",
                            path.place, path.text));
  }
  return (std::filesystem::path(directory_) / path.text).lexically_normal().string();
}

std::optional<std::string> SettingReader::writable_file(std::string_view option) const {
  const auto value = path(option);
  if (!value) return std::nullopt;
  check_writable_file(value->text, value->place);
  return value->text;
}

std::optional<std::chrono::milliseconds> SettingReader::duration(std::string_view option) const {
  const auto value = find(option);
  if (!value) return std::nullopt;
  return parse_duration(value->text, value->place);
}

std::optional<std::chrono::milliseconds> SettingReader::positive_duration(std::string_view option,
                                                                          std::string_view purpose) const {
  const auto time = duration(option);
  if (!time || time->count() > 0) return time;
  const SettingValue value = *find(option);
  throw Error(Errc::kUsage,
              fmt::format("{}: '{}' leaves no time to {}; give a longer one", value.place, value.text, purpose));
}

}  // namespace runjob
