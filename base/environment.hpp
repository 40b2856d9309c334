#pragma once

#include <map>
#include <string>
#include <string_view>

namespace runjob {

/// Environment variables as a value, so that code which depends on them can be tested with a map.
/// Names and values are bytes: neither needs to be UTF-8.
using Environment = std::map<std::string, std::string, std::less<>>;

/// The value of a variable, lent by `environment`; "" when it is not set.
std::string_view value_of(const Environment& environment, std::string_view name);

/// The variables of this process. No other code reads them; each program calls this once, in main() or init().
/// Without those that name folders or files of libraries to load, in a program that has more rights than its caller
/// (AT_SECURE): whoever starts it would run his code with these rights. The loader ignores LD_LIBRARY_PATH likewise.
Environment current_environment();

/// True in a rank of a job of runjob, and in what the rank starts.
bool is_inside_a_job(const Environment& environment);

/// True for a variable that names files which the ranks of a job write: its timeline or its commits. Outside of a job
/// it stands for an option of runjob. Inside of one it belongs to that job, and not to a job that one of its ranks
/// starts.
bool names_files_of_job(std::string_view variable);

}  // namespace runjob
