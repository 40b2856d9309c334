#pragma once

#include <string>
#include <string_view>

#include "base/unique_handle.hpp"

namespace runjob {

/// What becomes of the content of a regular file that exists.
enum class Existing {
  kEmpty,
  kContinue,  ///< it stays, and what is written follows it
};

/// Opens the file that a user has named for output. A missing file is made with mode 0666, less the umask. A regular
/// file that exists is emptied, unless it is to be continued; a device or a pipe is opened as it is.
///
/// The name can be guessed, so another user who may write to its folder could put something there first. Therefore a
/// file, a pipe or a link that belongs to another user is refused, unless that user is root, and so is a link of
/// another user on the way to the folder (see FolderWalk). A link of this user or of root is followed.
///
/// `what`   the option or variable that names the file, for messages
/// Owner    the caller. Programs that this process starts do not inherit the descriptor.
/// Threads  any. A pipe that no process reads yet blocks the caller until one does.
/// Errors   Error(kUsage): `WHAT: cannot create 'PATH': REASON`. The reason is the system's, or the owner of the file
///          or link with the remedy.
UniqueFd open_named_file(const std::string& path, std::string_view what, Existing existing = Existing::kEmpty);

}  // namespace runjob
