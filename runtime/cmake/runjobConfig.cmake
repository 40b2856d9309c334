# find_package(runjob): the target runjob::runjob, headers <runjob/runjob.h> and <runjob/runjob.hpp>.
include(${CMAKE_CURRENT_LIST_DIR}/runjobTargets.cmake)
