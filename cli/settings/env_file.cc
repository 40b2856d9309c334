#include "cli/settings/env_file.hpp"

#include <algorithm>
#include <sys/stat.h>
#include <unistd.h>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/files/trusted_file.hpp"
#include "base/read_file.hpp"
#include "cli/settings/variable_name.hpp"

namespace runjob {
namespace {

std::string_view without_first_blanks(std::string_view line) {
  return line.substr(std::min(line.find_first_not_of(" \t"), line.size()));
}

/// Takes the first line, without its end, which editors of Windows write as "\r\n".
std::string_view take_line(std::string_view& text) {
  const std::size_t end = std::min(text.find('\n'), text.size());
  std::string_view line = text.substr(0, end);
  text.remove_prefix(std::min(end + 1, text.size()));
  if (!line.empty() && line.back() == '\r') line.remove_suffix(1);
  return line;
}

void check_line(std::string_view name, std::string_view line, const std::string& place) {
  if (line.find('\0') != std::string_view::npos)
    throw Error(Errc::kUsage, fmt::format("{}: there is a zero byte, which no variable can hold", place));
  if (!is_variable_name(name) || name.find_first_of(" \t'\"") != std::string_view::npos)
    throw Error(Errc::kUsage, fmt::format("{}: this is neither NAME=VALUE nor NAME nor a comment after '#'; a NAME has "
                                          "no blanks and no quotes",
                                          place));
  if (is_given_to_ranks(name))
    throw Error(Errc::kUsage, fmt::format("{}: {} is set by runjob for each rank; leave it out", place, name));
}

}  // namespace

Environment parse_env_file(std::string_view text, const std::string& name, const Environment& environment,
                           Warnings& warnings) {
  constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";
  if (text.starts_with(kByteOrderMark)) text.remove_prefix(kByteOrderMark.size());
  Environment result;
  for (int number = 1; !text.empty(); ++number) {
    const std::string_view line = without_first_blanks(take_line(text));
    if (line.empty() || line.front() == '#') continue;
    const std::string place = fmt::format("{}: line {}", name, number);
    const std::size_t equals = line.find('=');
    const std::string variable(line.substr(0, equals));
    check_line(variable, line, place);
    if (equals != std::string_view::npos) {
      result[variable] = line.substr(equals + 1);
    } else if (const auto found = environment.find(variable); found != environment.end()) {
      result[variable] = found->second;
    } else {
      warnings.push_back(fmt::format("{}: {} is not set here, so the ranks do not get it", place, variable));
    }
  }
  return result;
}

Environment read_env_file(const SettingValue& file, const std::string& path, const Environment& environment,
                          Warnings& warnings) {
  const auto check_owner_and_mode = [&](int opened, const struct ::stat& info) {
    require_trusted(opened, info, file.text, file.place);
    if (info.st_uid == ::getuid() && (info.st_mode & (S_IRGRP | S_IROTH)) != 0)
      warnings.push_back(
          fmt::format("{0}: others may read {1}; if it has secrets, chmod go-r {1}", file.place, file.text));
  };
  return parse_env_file(read_file(path, "environment file", check_owner_and_mode), file.text, environment, warnings);
}

}  // namespace runjob
