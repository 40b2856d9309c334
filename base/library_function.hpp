#pragma once

#include <dlfcn.h>
#include <span>
#include <string_view>

#include <fmt/format.h>

#include "base/error.hpp"

namespace runjob {

/// Opens the first of `files` that the loader finds. `flags`: more of dlopen()'s, such as RTLD_NOLOAD. Null if there is
/// none; dlerror() then has the reason for the last one.
inline void* open_first(std::span<const char* const> files, int flags = 0) {
  for (const char* file : files) {
    if (void* library = ::dlopen(file, RTLD_NOW | RTLD_LOCAL | flags)) return library;
  }
  return nullptr;
}

/// Finds a function of a library that dlopen() has opened. `file`: the library's name in the error, with `advice` after
/// it, as "libmunge has no munge_encode".
/// Errors  Error(kUnavailable): the library has no such function.
template <class Function>
void find_function(void* library, const char* name, Function& function, std::string_view file,
                   std::string_view advice = "") {
  function = reinterpret_cast<Function>(::dlsym(library, name));
  if (function == nullptr) throw Error(Errc::kUnavailable, fmt::format("{} has no {}{}", file, name, advice));
}

}  // namespace runjob
