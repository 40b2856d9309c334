/// main() of every C++ test program; Catch2 v3 brings its own.
#if !__has_include(<catch2/catch_all.hpp>)
#define CATCH_CONFIG_MAIN
#include <catch2/catch.hpp>
#endif

#include <cstdlib>

namespace {

/// Tests leave nothing in the home of whoever runs them.
[[maybe_unused]] const int off = ::setenv("RUNJOB_REMEMBER_WAYS", "0", /*overwrite=*/1);

}  // namespace
