#pragma once

#include <array>
#include <string>

#include "base/unique_handle.hpp"

namespace runjob {

/// The folders and files below the DIR of --output-filename: `DIR/rank.N/stdout` and `stderr`.
///
/// Earlier jobs   Their folders are moved to `DIR/previous/TIME` first, all of them in one, also those of ranks that
///                this job does not have. A job that still runs goes on to write to the files that were moved. TIME is
///                that of the move, in UTC.
/// Other users    The names can be guessed, so another user who may write to DIR could put something there first.
///                Therefore no link below DIR is followed, no folder of another user is used or moved, and nothing is
///                written to a file that is there. DIR itself may be a link, or have links in its path: see FolderWalk
///                for those that are followed.
class OutputFiles {
 public:
  /// Makes `directory` if it is missing, and moves what earlier jobs have left there.
  /// Errors  Error(kUsage), here and below: `--output-filename: cannot ...`, with path, reason and remedy.
  explicit OutputFiles(const std::string& directory);

  struct Streams {
    UniqueFd standard_output, standard_error;
  };
  /// Makes the folder `folder` with the two files. One that a job has made there meanwhile is moved first.
  Streams create(const std::string& folder);

 private:
  void keep_earlier();
  void keep(const std::string& folder);
  UniqueFd make_folder(const std::string& folder);
  void open_place_for_earlier();

  std::string path_;
  UniqueFd directory_;
  std::string kept_path_;  ///< DIR/previous/TIME; empty as long as nothing was moved
  UniqueFd kept_;
};

}  // namespace runjob
