#pragma once

#include <array>
#include <runjob/runjob.h>
#include <string>

namespace runjob::tensorflow {

/// An operation of TensorFlow's that returns a number of this rank's place, such as its rank: one int32. It is the
/// number at the time when the operation runs, not when the graph was made.
/// Threads  those on which TensorFlow runs the operation.
/// Errors   The operation fails with FailedPrecondition before init(), and with InvalidArgument where there is no such
///          process set.
struct PlaceType {
  const char* name;                         ///< the operation's
  int (*of_job)();                          ///< the number in the whole job, which is process set 0
  int (*of_set)(std::int32_t process_set);  ///< the number in another set; null: the operation has no process set
};

/// Returns 1 if this rank belongs to the set, and otherwise 0; -1 where there is no such set.
int process_set_included(std::int32_t process_set);

inline constexpr std::array<PlaceType, 5> kPlaceTypes = {{
    {"HorovodSize", runjob_size, runjob_process_set_size},
    {"HorovodProcessSetIncluded", runjob_is_initialized, process_set_included},
    {"HorovodRank", runjob_rank, nullptr},
    {"HorovodLocalSize", runjob_local_size, nullptr},
    {"HorovodLocalRank", runjob_local_rank, nullptr},
}};

/// Registers the kernels of all kPlaceTypes with TensorFlow. Returns the message of the first failure; empty for none.
std::string register_place_kernels();

}  // namespace runjob::tensorflow
