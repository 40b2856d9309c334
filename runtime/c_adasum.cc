#include <cstddef>
#include <runjob/runjob.h>
#include <span>

#include <fmt/format.h>

#include "base/error.hpp"
#include "runtime/c_status.hpp"
#include "runtime/operations/adasum_factors.hpp"

using namespace runjob::runtime;

runjob_code runjob_adasum_factors(const double* dots, int32_t count, int32_t size, double* factors) {
  return guarded([&] {
    if (count < 0 || size < 1 || (count > 0 && (dots == nullptr || factors == nullptr))) {
      throw runjob::Error(runjob::Errc::kInvalidArgument,
                          fmt::format("Adasum's factors: {} matrices at {} for {} ranks, and factors at {}", count,
                                      fmt::ptr(dots), size, fmt::ptr(factors)));
    }
    const auto ranks = static_cast<std::size_t>(size);
    for (std::size_t tensor = 0; tensor < static_cast<std::size_t>(count); ++tensor) {
      find_adasum_factors(std::span(dots + tensor * ranks * ranks, ranks * ranks),
                          std::span(factors + tensor * ranks, ranks));
    }
    return runjob::Status();
  });
}
