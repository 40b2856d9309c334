#pragma once

#include <string>
#include <string_view>

/// Checks of absolute paths before a job starts, so that a result which cannot be written is an error at once, and not
/// after an hour. A check changes nothing, so a path that it accepts may still fail later. `place` names the option.
/// Threads  any.
/// Errors   Error(kUsage): `PLACE: PATH: REASON; REMEDY`.
namespace runjob {

/// A directory that can be entered.
void check_directory(const std::string& path, std::string_view place);

/// A file that exists and can be read.
void check_readable_file(const std::string& path, std::string_view place);

/// A file that exists and can be written, or can be made in a directory that exists.
void check_writable_file(const std::string& path, std::string_view place);

/// A directory that exists and can be written, or can be made.
void check_output_directory(const std::string& path, std::string_view place);

/// A directory of this user alone, and no link: others may not write to it. It may be missing, because it may exist on
/// other hosts only.
void check_own_directory(const std::string& path, std::string_view place);

}  // namespace runjob
