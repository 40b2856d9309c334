/// runjob-probe opens librunjob and prints the capabilities of its backends. It is a program of its own, so that a
/// backend that crashes or hangs when it is opened ends only this process.
/// Prints  the JSON document of runjob_backends_json(), exit status 0; or one line with the reason, status 1.
#include <array>
#include <cstdio>
#include <cstring>
#include <dlfcn.h>
#include <string>
#include <unistd.h>

#include "runjob/runjob.h"

namespace {

/// The directory of this program; "" when /proc is not available.
std::string own_directory() {
  std::array<char, 4096> path{};
  const ssize_t length = ::readlink("/proc/self/exe", path.data(), path.size() - 1);
  const std::string program(path.data(), length > 0 ? static_cast<std::size_t>(length) : 0);
  return program.substr(0, program.find_last_of('/') + 1);
}

/// Opens librunjob at its place relative to this program: beside it, in the build tree's lib, or installed
/// (libexec/runjob is two levels below the prefix). `reason` becomes the first failure that is not "no such file".
void* open_library(std::string& reason) {
  const std::string directory = own_directory();
  for (const char* place : {"", "../lib/", "../../lib/", "../../" RUNJOB_INSTALL_LIBDIR "/"}) {
    const std::string path = directory + place + "librunjob.so";
    if (::access(path.c_str(), F_OK) != 0) continue;
    void* library = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr && reason.empty()) reason = ::dlerror();
    if (library != nullptr) return library;
  }
  if (reason.empty()) reason = "librunjob.so is not in " + directory + ", ../lib or ../../lib of it";
  return nullptr;
}

int fail(const std::string& reason) {
  std::printf("%s\n", reason.c_str());
  return 1;
}

}  // namespace

int main() {
  std::string reason;
  void* library = open_library(reason);
  if (library == nullptr) return fail(reason);
  void* symbol = ::dlsym(library, "runjob_backends_json");
  if (symbol == nullptr) return fail("librunjob.so has no runjob_backends_json: it is of another version");
  decltype(&runjob_backends_json) backends_json = nullptr;
  static_assert(sizeof(backends_json) == sizeof(symbol));
  std::memcpy(&backends_json, &symbol, sizeof(symbol));
  const char* document = backends_json();
  if (document == nullptr) return fail("librunjob.so did not list its backends");
  std::printf("%s\n", document);
  return std::fflush(stdout) == 0 ? 0 : 1;
}
