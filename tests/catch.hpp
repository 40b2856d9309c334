#pragma once

/// Catch2 v2 (Debian 12) and v3 (elsewhere) under one include.
#if __has_include(<catch2/catch_all.hpp>)
#include <catch2/catch_all.hpp>  // IWYU pragma: export
using Catch::Matchers::ContainsSubstring;
#else
#include <catch2/catch.hpp>  // IWYU pragma: export
inline auto ContainsSubstring(const std::string& text) {
  return Catch::Matchers::Contains(text);
}
#endif
