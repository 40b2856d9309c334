#pragma once

#include <cstddef>
#include <cstdint>
#include <new>
#include <string>

#include "benchmarks/collectives/native/arguments.hpp"

namespace runjob::benchmark {

/// One operation that can be in flight beside the others. Its buffers are lent by the loop. allreduce and broadcast
/// work in place, on `input`; the others have an `output`.
struct Slot {
  std::size_t index = 0;
  std::string name;  // the same on all ranks, another one for each slot
  int root = 0;
  std::byte* input = nullptr;
  std::byte* output = nullptr;
  std::size_t inputs = 0;  // elements
  std::size_t outputs = 0;
};

/// The interface of a library for the loop. Made for one operation and dtype.
/// Threads  one.
/// Errors   exceptions.
class Interface {
 public:
  virtual ~Interface() = default;

  virtual std::string library() const = 0;  // and its version, on one line
  virtual int rank() const = 0;
  virtual int size() const = 0;

  /// Why the operation cannot be measured; empty when it can. The same on all ranks.
  virtual std::string lacks() const = 0;

  virtual void run(Slot& slot) = 0;  // blocking
  virtual void start(Slot& slot) = 0;
  virtual void finish() = 0;  // waits for all that was started

  /// Memory for a buffer; not touched yet. `free` gets what `allocate` returned.
  virtual std::byte* allocate(std::size_t bytes) {
    return static_cast<std::byte*>(::operator new[](bytes, kAlignment));
  }
  virtual void free(std::byte* memory) { ::operator delete[](memory, kAlignment); }

  /// Where the result of a slot's last operation is.
  virtual const std::byte* result(const Slot& slot) const = 0;

  virtual void barrier() = 0;
  virtual std::int64_t of_rank_0(std::int64_t value) = 0;  // a collective as well

 private:
  static constexpr std::align_val_t kAlignment{64};
};

}  // namespace runjob::benchmark
