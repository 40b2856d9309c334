# Every third-party library, found once. Which folder may use which is in docs/architecture.md, and a test checks it.
find_package(Threads REQUIRED)
find_package(Boost 1.81 REQUIRED CONFIG)   # 1.74 lacks what Asio's coroutines need: see docs/architecture.md
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
