# What a release is built with so that an error in it is the end of a process and not a way in: each folder with what users
# run adds RUNJOB_HARDENING to its options. measurements.md has what it costs. The parts of the runtime that each
# operation passes have RUNJOB_HARDENING_OF_OPERATIONS: without libstdc++'s assertions, which take a tenth of a short one.
if(RUNJOB_SANITIZED)
  set(RUNJOB_HARDENING_OF_OPERATIONS "")
  set(RUNJOB_HARDENING "")
else()
  # Some distributions define _FORTIFY_SOURCE themselves. It needs optimization.
  set(RUNJOB_HARDENING_OF_OPERATIONS -fstack-protector-strong $<$<CONFIG:Release>:-U_FORTIFY_SOURCE>
                                     $<$<CONFIG:Release>:-D_FORTIFY_SOURCE=3>)
  set(RUNJOB_HARDENING ${RUNJOB_HARDENING_OF_OPERATIONS} $<$<CONFIG:Release>:-D_GLIBCXX_ASSERTIONS>)
endif()

# runjob_harden(<target>): the tables of a program or library are bound and read-only before its first line runs. A program's
# addresses are random too; call it after -static-pie, which does that for a static one.
function(runjob_harden target)
  if(RUNJOB_SANITIZED)
    return()
  endif()
  target_link_options(${target} PRIVATE LINKER:-z,relro,-z,now)
  get_target_property(type ${target} TYPE)
  get_target_property(options ${target} LINK_OPTIONS)
  if(type STREQUAL "EXECUTABLE" AND NOT options MATCHES "-static-pie")
    target_link_options(${target} PRIVATE -pie)
  endif()
endfunction()
