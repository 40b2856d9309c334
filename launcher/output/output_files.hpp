#pragma once

#include <string>

#include "base/unique_handle.hpp"

namespace runjob {

/// The folders and files below the DIR of --output-filename. Their names can be guessed, so another user who may write
/// to DIR could put something there first. Therefore no link below DIR is followed, no folder of another user is used,
/// and a file that is there is replaced, not written to.
class OutputFiles {
 public:
  /// Makes `directory` if it is missing.
  /// Errors  Error(kUsage), here and below: `--output-filename: cannot ...`, with path, reason and remedy.
  explicit OutputFiles(const std::string& directory);

  /// Makes the folder `folder`, if it is missing, and a new file `name` in it.
  UniqueFd create(const std::string& folder, const std::string& name) const;

 private:
  std::string path_;
  UniqueFd directory_;
};

}  // namespace runjob
