# runjob::warnings: every target of ours links it PRIVATE, so warnings are errors in our code only.
add_library(runjob_warnings INTERFACE)
add_library(runjob::warnings ALIAS runjob_warnings)
target_compile_options(runjob_warnings INTERFACE
  -Wall -Wextra -Wpedantic -Wshadow -Wnon-virtual-dtor -Woverloaded-virtual -Wcast-qual -Wswitch -Werror
  $<$<CXX_COMPILER_ID:Clang>:-Wthread-safety>
  # In a batch of sources, the anonymous namespaces of all but the first source look to g++ like those of headers.
  $<$<AND:$<CXX_COMPILER_ID:GNU>,$<BOOL:${CMAKE_UNITY_BUILD}>>:-Wno-subobject-linkage>
  # g++ 12 reports these inside libstdc++, fmt and Asio once everything is inlined, or, at -O1, only one function of a pair.
  $<$<CXX_COMPILER_ID:GNU>:-Wno-maybe-uninitialized -Wno-restrict -Wno-stringop-overflow -Wno-array-bounds
                           -Wno-mismatched-new-delete>)
