#pragma once

#include <string_view>

namespace runjob {

/// True for a name that a program's environment can have: anything but '=' and a zero byte, such as "spark.app". Not
/// every shell can use such a name.
bool is_variable_name(std::string_view text);

/// True for a variable that runjob gives to each rank, such as RUNJOB_RANK; any other value would break the job.
bool is_given_to_ranks(std::string_view name);

}  // namespace runjob
