#pragma once

#include <string>
#include <string_view>

#include "base/unique_handle.hpp"

namespace runjob {

/// Opens the file that a user has named for output, and empties it. It may exist already, also as a device or a pipe.
/// Its name can be guessed, so another user who may write to its folder could put something there first. Therefore a
/// file, a pipe or a link of another user is not used; what belongs to root is.
///
/// `what`   the option or variable that names it, for messages
/// Errors   Error(kUsage): `WHAT: cannot create 'PATH': REASON`, with the remedy.
UniqueFd open_named_file(const std::string& path, std::string_view what);

}  // namespace runjob
