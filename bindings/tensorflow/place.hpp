#pragma once

#include <array>
#include <runjob/runjob.h>
#include <string>

namespace runjob::tensorflow {

/// An operation whose value is this rank's place when it runs, not when the graph was made: one int32.
struct PlaceType {
  const char* name;
  int (*of_job)();
  int (*of_set)(std::int32_t process_set);  ///< null: the operation has no process set
};

/// 1 or 0; -1 where there is no such set.
int process_set_included(std::int32_t process_set);

inline constexpr std::array<PlaceType, 5> kPlaceTypes = {{
    {"HorovodSize", runjob_size, runjob_process_set_size},
    {"HorovodProcessSetIncluded", runjob_is_initialized, process_set_included},
    {"HorovodRank", runjob_rank, nullptr},
    {"HorovodLocalSize", runjob_local_size, nullptr},
    {"HorovodLocalRank", runjob_local_rank, nullptr},
}};

/// Registers their kernels. Returns what went wrong; empty when nothing did.
std::string register_place_kernels();

}  // namespace runjob::tensorflow
