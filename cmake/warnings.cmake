# runjob::warnings: every target of ours links it PRIVATE, so warnings are errors in our code only.
add_library(runjob_warnings INTERFACE)
add_library(runjob::warnings ALIAS runjob_warnings)
target_compile_options(runjob_warnings INTERFACE
  -Wall -Wextra -Wpedantic -Wshadow -Wnon-virtual-dtor -Woverloaded-virtual -Wcast-qual -Wswitch -Werror
  $<$<CXX_COMPILER_ID:Clang>:-Wthread-safety>
  # g++ 12 reports these inside libstdc++ and fmt once everything is inlined.
  $<$<CXX_COMPILER_ID:GNU>:-Wno-maybe-uninitialized -Wno-restrict -Wno-stringop-overflow -Wno-array-bounds>)
