# The versions of the libraries whose code is in runjob's programs and libraries, which no scanner of a system's packages sees there: for
# `runjob --check-build`, and for the wheel as a bill of materials in CycloneDX's form. The version is that of the system's package, which
# names the distribution's security fixes too; without dpkg, the one that the library's CMake package or header names.
#
# RUNJOB_LINKED_LIBRARIES   rows of C++ for cli/check_build/linked_libraries.hpp.in
# RUNJOB_SBOM               the file of the bill of materials

file(STRINGS /etc/os-release OS_RELEASE REGEX "^(ID|VERSION_ID)=")
string(REGEX REPLACE "^.*(^|;)ID=\"?([^\";]*).*$" "\\2" OS_ID "${OS_RELEASE}")
string(REGEX REPLACE "^.*VERSION_ID=\"?([^\";]*).*$" "\\1" OS_VERSION "${OS_RELEASE}")
find_program(DPKG_QUERY dpkg-query)

# version_in_header(RESULT HEADER MACRO): the text that a header defines the macro as; "" without the header.
function(version_in_header result header macro)
  set(version "")
  find_file(found ${header} NO_CACHE)
  if(found)
    file(STRINGS ${found} lines REGEX "define +${macro} +\"")
    string(REGEX REPLACE "^.*\"([^\"]*)\".*$" "\\1" version "${lines}")
  endif()
  set(${result} "${version}" PARENT_SCOPE)
endfunction()

# add_linked_library(NAME FILE VERSION): FILE is what is linked or included; VERSION counts where no package owns it.
function(add_linked_library name file version)
  set(package "")
  set(purl "")
  if(DPKG_QUERY AND EXISTS "${file}")
    file(REAL_PATH "${file}" real)
    execute_process(COMMAND ${DPKG_QUERY} --search ${real} OUTPUT_VARIABLE owner ERROR_QUIET)
    string(REGEX REPLACE ": .*$" "" owner "${owner}")
    if(owner)
      execute_process(COMMAND ${DPKG_QUERY} --show --showformat "\${source:Package};\${source:Version}" ${owner}
                      OUTPUT_VARIABLE package ERROR_QUIET)
    endif()
  endif()
  if(package)
    list(GET package 1 version)
    list(GET package 0 package)
    string(REPLACE "+" "%2B" quoted "${version}")
    set(purl ",\n     \"purl\": \"pkg:deb/${OS_ID}/${package}@${quoted}?distro=${OS_ID}-${OS_VERSION}\"")
  endif()
  if(NOT version)
    set(version unknown)
  endif()
  set(RUNJOB_LINKED_LIBRARIES "${RUNJOB_LINKED_LIBRARIES}    {\"${name}\", \"${version}\"},\n" PARENT_SCOPE)
  set_property(GLOBAL APPEND PROPERTY RUNJOB_SBOM_COMPONENTS
               "    {\"type\": \"library\", \"name\": \"${name}\", \"version\": \"${version}\"${purl}}")
endfunction()

version_in_header(LIBSSH2_VERSION libssh2.h LIBSSH2_VERSION)
version_in_header(SODIUM_VERSION sodium/version.h SODIUM_VERSION_STRING)
find_file(GLOO_HEADER gloo/config.h NO_CACHE)
find_file(FMT_HEADER fmt/core.h NO_CACHE)
find_file(SPDLOG_HEADER spdlog/spdlog.h NO_CACHE)
find_file(JSON_HEADER nlohmann/json.hpp NO_CACHE)
find_file(CLI11_HEADER CLI/CLI.hpp NO_CACHE)
find_library(LIBC_STATIC libc.a NO_CACHE)
execute_process(COMMAND ${CMAKE_CXX_COMPILER} -print-file-name=libstdc++.a OUTPUT_VARIABLE LIBSTDCXX OUTPUT_STRIP_TRAILING_WHITESPACE)

set(RUNJOB_LINKED_LIBRARIES "")
add_linked_library(OpenSSL "${LIBCRYPTO_STATIC}" "${OPENSSL_VERSION}")
add_linked_library(libssh2 "${LIBSSH2_STATIC}" "${LIBSSH2_VERSION}")
add_linked_library(zlib "${LIBZ_STATIC}" "")
add_linked_library(libsodium "${SODIUM}" "${SODIUM_VERSION}")
add_linked_library(yaml-cpp "${YAML_CPP}" "${yaml-cpp_VERSION}")
add_linked_library(Gloo "${GLOO_HEADER}" "")
add_linked_library(Boost "${Boost_INCLUDE_DIRS}/boost/version.hpp" "${Boost_VERSION}")
add_linked_library(fmt "${FMT_HEADER}" "${fmt_VERSION}")
add_linked_library(spdlog "${SPDLOG_HEADER}" "${spdlog_VERSION}")
add_linked_library(nlohmann_json "${JSON_HEADER}" "${nlohmann_json_VERSION}")
add_linked_library(CLI11 "${CLI11_HEADER}" "${CLI11_VERSION}")
add_linked_library(glibc "${LIBC_STATIC}" "")
add_linked_library(libstdc++ "${LIBSTDCXX}" "${CMAKE_CXX_COMPILER_VERSION}")

get_property(components GLOBAL PROPERTY RUNJOB_SBOM_COMPONENTS)
list(JOIN components ",\n" components)
set(RUNJOB_SBOM ${PROJECT_BINARY_DIR}/runjob-launcher.cdx.json)
file(CONFIGURE OUTPUT ${RUNJOB_SBOM} CONTENT [[{
  "bomFormat": "CycloneDX",
  "specVersion": "1.5",
  "version": 1,
  "metadata": {
    "component": {"type": "library", "name": "runjob-launcher", "version": "@PROJECT_VERSION@",
     "purl": "pkg:pypi/runjob-launcher@@PROJECT_VERSION@"}
  },
  "components": [
@components@
  ]
}
]] @ONLY)
