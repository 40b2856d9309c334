# Every third-party library, found once. Which folder may use which is in architecture.md, and a test checks it.
find_package(Threads REQUIRED)
find_package(Boost 1.81 REQUIRED CONFIG)   # 1.74 lacks what Asio's coroutines need: see docs/developers/architecture.md
find_package(fmt REQUIRED)
find_package(spdlog REQUIRED)
find_package(nlohmann_json REQUIRED)
find_package(yaml-cpp REQUIRED)
find_library(YAML_CPP libyaml-cpp.a)   # static where there is one, so that programs start fast and run anywhere
if(NOT YAML_CPP)
  set(YAML_CPP yaml-cpp)
endif()
find_library(SODIUM libsodium.a)   # HMAC, random numbers, ciphers: 0.2 MB in the static agent, where libcrypto would be 4 MB
if(NOT SODIUM)
  find_library(SODIUM sodium REQUIRED)
endif()
find_package(CLI11 REQUIRED)
find_package(Gloo CONFIG)

# libssh2 with the libcrypto that it needs. Static where there are such libraries, as above; not under sanitizers, which see
# more of a shared one.
find_package(OpenSSL 3 REQUIRED COMPONENTS Crypto)
find_path(LIBSSH2_INCLUDE_DIR libssh2.h REQUIRED)
find_library(LIBSSH2_STATIC libssh2.a)
find_library(LIBCRYPTO_STATIC libcrypto.a)
find_library(LIBZ_STATIC libz.a)
add_library(LibSsh2::LibSsh2 INTERFACE IMPORTED)
target_include_directories(LibSsh2::LibSsh2 INTERFACE ${LIBSSH2_INCLUDE_DIR} ${OPENSSL_INCLUDE_DIR})
if(LIBSSH2_STATIC AND LIBCRYPTO_STATIC AND LIBZ_STATIC AND NOT RUNJOB_SANITIZED)
  target_link_libraries(LibSsh2::LibSsh2 INTERFACE ${LIBSSH2_STATIC} ${LIBCRYPTO_STATIC} ${LIBZ_STATIC} ${CMAKE_DL_LIBS})
else()
  find_library(LIBSSH2_SHARED ssh2 REQUIRED)
  target_link_libraries(LibSsh2::LibSsh2 INTERFACE ${LIBSSH2_SHARED} OpenSSL::Crypto)
endif()
