#pragma once

#include <algorithm>
#include <dlfcn.h>
#include <exception>
#include <string>
#include <sys/mman.h>
#include <unistd.h>
#include <vector>

#include "tests/catch.hpp"
#include "tests/gpu_stand_in/stand_in.hpp"
#include "tests/gpu_stand_in/vendor_names.hpp"
#include "tests/runtime/gpu_tensors.hpp"
#include "tests/runtime/rank_processes.hpp"

/// Ranks that use the stand-ins' GPUs.
namespace runjob::runtime {

using Floats = std::vector<float>;

/// Runs `body(rank)` in a job of these ranks.
template <class Body>
std::vector<Outcome> outcomes_of(const RankOptions& options, Body body) {
  return run_ranks(options, [&](int rank) {
    check(runjob_init());
    body(rank);
    check(runjob_shutdown());
    return Outcome();
  });
}

template <class Body>
std::vector<Outcome> outcomes_of(int size, Body body, const Environment& environment = {}) {
  RankOptions options = on_one_host(size);
  options.environment = environment;
  return outcomes_of(options, body);
}

inline void require_success(const std::vector<Outcome>& outcomes) {
  for (const Outcome& each : outcomes) {
    INFO(each.message);
    CHECK(each.ok());
  }
}

template <class Body>
void on_ranks(const RankOptions& options, Body body) {
  require_success(outcomes_of(options, body));
}

template <class Body>
void on_ranks(int size, Body body, const Environment& environment = {}) {
  require_success(outcomes_of(size, body, environment));
}

inline const runjob_stand_in_gpu& stand_in_gpu() {
  void* const driver = ::dlopen(stand_in::kDriverFile, RTLD_NOW);
  return *reinterpret_cast<const runjob_stand_in_gpu* (*)()>(::dlsym(driver, "runjob_stand_in"))();
}

/// The calls of a function of the driver or NCCL in this process so far, if RUNJOB_STAND_IN_COUNT lists it.
inline int calls_of(const char* function) {
  return stand_in_gpu().calls(function);
}

/// The text of what goes wrong in `body`.
template <class Body>
std::string failure_of(Body body) {
  try {
    body();
  } catch (const std::exception& error) {
    return error.what();
  }
  return "nothing";
}

inline void require_text(const std::string& text, const std::string& part) {
  require(text.find(part) != text.npos, "'" + part + "' is not in: " + text);
}

inline runjob_tensor described(const GpuTensor<float>& in, const GpuTensor<float>& out, const std::int64_t& extent) {
  return {in.get(), out.get(), static_cast<std::int64_t>(out.bytes()), &extent, 1, RUNJOB_FLOAT32};
}

/// An allreduce in place of some ones on the GPU with this rank's number.
inline runjob_code sum_of_ones(int ordinal, const char* name) {
  const UserStream stream(ordinal);
  const std::int64_t extent = 2;
  const GpuTensor<float> tensor(stream, {1, 1});
  const runjob_tensor one = described(tensor, tensor, extent);
  return finish(start(gpu_operation(name, RUNJOB_ALLREDUCE, one, stream)));
}

/// Shuts down after a failure, joins a new job of the same ranks, and computes there.
inline void begin_again(int rank) {
  check(runjob_shutdown());
  check(runjob_init());
  check(sum_of_ones(rank, "again"));
}

/// An allreduce in place of two elements, which is launched when this returns.
inline runjob_handle launched(const UserStream& stream, const GpuTensor<float>& tensor, const char* name) {
  const std::int64_t extent = 2;
  const runjob_tensor one = described(tensor, tensor, extent);
  const runjob_handle handle = start(gpu_operation(name, RUNJOB_ALLREDUCE, one, stream));
  check(runjob_wait_on_stream(handle, stream.get(), -1));
  return handle;
}

/// What this process writes to its standard error from now on.
class CapturedErrors {
 public:
  CapturedErrors() : file_(::memfd_create("errors", 0)) { ::dup2(file_, STDERR_FILENO); }

  std::string text() const {
    std::string text(static_cast<std::size_t>(::lseek(file_, 0, SEEK_END)), ' ');
    const ssize_t bytes = ::pread(file_, text.data(), text.size(), 0);
    text.resize(static_cast<std::size_t>(std::max<ssize_t>(bytes, 0)));
    return text;
  }

 private:
  const int file_;
};

}  // namespace runjob::runtime
