#pragma once

#include <string>
#include <string_view>

/// Checks of absolute paths before a job starts, so that nobody waits an hour to learn that the result cannot
/// be written. `place` names the option in messages. They look, and change nothing: what they allow can still
/// fail later. Errors  kUsage.
namespace runjob {

/// A directory that can be entered.
void check_directory(const std::string& path, std::string_view place);

/// A file that exists and can be read.
void check_readable_file(const std::string& path, std::string_view place);

/// A file that exists and can be written, or can be made in a directory that exists.
void check_writable_file(const std::string& path, std::string_view place);

/// A directory that exists and can be written, or can be made.
void check_output_directory(const std::string& path, std::string_view place);

/// A directory that belongs to this user and is no link. It need not exist, since it may be there on other hosts only.
void check_own_directory(const std::string& path, std::string_view place);

}  // namespace runjob
