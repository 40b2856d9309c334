#pragma once

#include <cstdint>
#include <string>

/// Counts the blocks that the runtime takes from the heap, on all threads: calls of operator new, which this program
/// replaces, from librunjob.so and its module of the GPUs. Those of the stand-ins do not count. Not with the sanitizers,
/// which replace operator new themselves.
/// Threads  one at a time.
namespace runjob::runtime {

/// Opens the module of the GPUs so that it calls this program's operator new: as the runtime opens it, it would call
/// that of the system. To be called before the first operation on a GPU.
void open_counted_module();

struct HeapBlocks {
  std::int64_t count = 0;
  std::string first;  ///< the call path of the first one, from the innermost function on; empty for none
};
/// Counts from now on.
void begin_counting_blocks();
HeapBlocks end_counting_blocks();

}  // namespace runjob::runtime
