#pragma once

#include <cstdint>
#include <cstring>
#include <runjob/runjob.h>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

/// The C interface as tests call it: blocking, a failure is an exception whose text is the call's.
namespace runjob::runtime {

inline void check(runjob_code code) {
  if (code != RUNJOB_OK) throw std::runtime_error(std::to_string(code) + ": " + runjob_error_message());
}

inline void require(bool condition, const std::string& text) {
  if (!condition) throw std::runtime_error(text);
}

using Shape64 = std::vector<std::int64_t>;

template <class T>
runjob_handle start_allreduce(const std::string& name, const std::vector<T>& in, std::vector<T>& out,
                              runjob_dtype dtype, runjob_reduce_op op = RUNJOB_SUM, double prescale = 1,
                              double postscale = 1) {
  const auto extent = static_cast<std::int64_t>(in.size());
  runjob_handle handle = 0;
  check(runjob_allreduce_async(name.c_str(), in.data(), out.data(), &extent, 1, dtype, op, prescale, postscale, 0,
                               &handle));
  return handle;
}

/// The outcome, after which the handle is gone.
inline runjob_code finish(runjob_handle handle) {
  const runjob_code code = runjob_wait(handle, -1);
  runjob_release(handle);
  return code;
}

/// What a done operation holds, as values of one type, and its extents; after it the handle is gone.
template <class T>
std::pair<std::vector<T>, Shape64> take_output(runjob_handle handle) {
  check(runjob_wait(handle, -1));
  const void* data = nullptr;
  const std::int64_t* extents = nullptr;
  std::int32_t ndim = 0;
  check(runjob_output(handle, &data, &extents, &ndim));
  const Shape64 shape(extents, extents + ndim);
  std::size_t count = 1;
  for (const std::int64_t extent : shape) count *= static_cast<std::size_t>(extent);
  std::vector<T> values(count);
  if (count != 0) std::memcpy(values.data(), data, count * sizeof(T));
  runjob_release(handle);
  return {values, shape};
}

/// A small float sum that succeeds only when every rank takes part. A refused submission is an outcome too.
inline runjob_code small_allreduce(const std::string& name) {
  std::vector<float> values{1, 2, 3};
  const std::int64_t extent = 3;
  runjob_handle handle = 0;
  const runjob_code code = runjob_allreduce_async(name.c_str(), values.data(), values.data(), &extent, 1,
                                                  RUNJOB_FLOAT32, RUNJOB_SUM, 1, 1, 0, &handle);
  return code == RUNJOB_OK ? finish(handle) : code;
}

inline runjob_code barrier(const std::string& name) {
  runjob_handle handle = 0;
  const runjob_code code = runjob_barrier_async(name.c_str(), 0, &handle);
  return code == RUNJOB_OK ? finish(handle) : code;
}

}  // namespace runjob::runtime
