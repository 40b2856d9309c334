# Targets of libFuzzer, which need clang: the preset `fuzz`. The target `fuzzers` builds all of them; packaging/fuzz.sh runs
# them. Libraries with coroutines are out: clang 14 cannot sanitize these.
if(RUNJOB_BUILD_FUZZERS)
  add_custom_target(fuzzers)
endif()

# runjob_add_fuzz(<name> LIBRARIES ...): the program <name>_fuzz of <name>_fuzz.cc, if fuzz targets are built.
function(runjob_add_fuzz name)
  if(NOT RUNJOB_BUILD_FUZZERS)
    return()
  endif()
  cmake_parse_arguments(ARG "" "" "LIBRARIES" ${ARGN})
  add_executable(${name}_fuzz ${name}_fuzz.cc)
  target_compile_options(${name}_fuzz PRIVATE -fsanitize=fuzzer)
  target_link_options(${name}_fuzz PRIVATE -fsanitize=fuzzer)
  target_link_libraries(${name}_fuzz PRIVATE ${ARG_LIBRARIES} runjob::warnings)
  add_dependencies(fuzzers ${name}_fuzz)
endfunction()
