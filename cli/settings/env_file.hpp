#pragma once

#include <string>
#include <string_view>

#include "base/environment.hpp"
#include "cli/options/settings.hpp"
#include "cli/settings/setting_reader.hpp"

namespace runjob {

/// The variables in the text of an environment file, a later one wins. Each line is empty, a comment that begins with
/// '#', NAME=VALUE, or NAME, which takes its value from `environment`. Blanks before a line do not count; VALUE is all
/// that follows '=', with its quotes and blanks. A NAME that `environment` lacks is a warning. `name`: the file as
/// messages name it.
/// Errors  kUsage naming file and line for anything else, and for a variable that defines a rank's position in the job.
///         No message has a value, which may be a secret.
/// Source  Docker, cli/opts/file.go: `docker run --env-file`.
Environment parse_env_file(std::string_view text, const std::string& name, const Environment& environment,
                           Warnings& warnings);

/// The same for a file, whose path `file` has as the user wrote it. `path`: the same path made absolute. A file of this
/// user that others may read is a warning.
/// Errors  also kUsage for a file that cannot be read, that belongs to another user, or that others may write to.
Environment read_env_file(const SettingValue& file, const std::string& path, const Environment& environment,
                          Warnings& warnings);

}  // namespace runjob
