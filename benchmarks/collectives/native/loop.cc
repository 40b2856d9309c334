#include "benchmarks/collectives/native/loop.hpp"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <memory>
#include <stdexcept>
#include <utility>

#include "benchmarks/collectives/native/elements.hpp"

namespace runjob::benchmark {
namespace {

struct FreeByInterface {
  Interface* interface = nullptr;
  void operator()(std::byte* memory) const { interface->free(memory); }
};
using Buffer = std::unique_ptr<std::byte[], FreeByInterface>;

Buffer make_buffer(Interface& interface, std::size_t bytes) {
  Buffer buffer(interface.allocate(std::max<std::size_t>(bytes, 1)), {&interface});
  std::memset(buffer.get(), 0, bytes);
  return buffer;
}

/// The slots of one size and their memory. A blocking broadcast has one for each root, all with the same buffer.
class Slots {
 public:
  Slots(Interface& interface, const Arguments& arguments, Size size) : interface_(interface), arguments_(arguments) {
    const bool rotates = arguments.operation == Operation::broadcast && arguments.mode == Mode::blocking;
    const std::size_t wanted = arguments.mode == Mode::blocking ? 1 : std::max<std::size_t>(1, size.in_flight);
    const std::size_t count = rotates ? static_cast<std::size_t>(interface.size()) : wanted;
    for (std::size_t i = 0; i < count; ++i) add(i, size.bytes, rotates && i > 0);
  }

  std::vector<Slot>& all() { return slots_; }

  void fill(Slot& slot) const { benchmark::fill(arguments_.dtype, interface_.rank(), slot.input, slot.inputs); }

  void check(const Slot& slot) const {
    if (is_right(arguments_.operation, arguments_.dtype, interface_.result(slot), slot.inputs, interface_.rank(),
                 interface_.size(), slot.root)) {
      return;
    }
    throw std::runtime_error(std::string("wrong result of ") + name_of(arguments_.operation) + " of " +
                             std::to_string(slot.inputs) + " elements of " + name_of(arguments_.dtype) + " on rank " +
                             std::to_string(interface_.rank()));
  }

  /// Zeros: however often they are summed in place, they stay what they are.
  void clear() {
    for (Slot& slot : slots_) std::memset(slot.input, 0, slot.inputs * bytes_of(arguments_.dtype));
  }

 private:
  void add(std::size_t index, std::size_t bytes, bool shares) {
    Slot slot;
    slot.index = index;
    slot.name = std::string(name_of(arguments_.operation)) + "." + std::to_string(bytes) + "." + std::to_string(index);
    slot.root = static_cast<int>(index) % interface_.size();
    slot.inputs = input_count(arguments_.operation, arguments_.dtype, bytes, interface_.size());
    slot.outputs = output_count(arguments_.operation, slot.inputs, interface_.size());
    const bool in_place = arguments_.operation == Operation::allreduce || arguments_.operation == Operation::broadcast;
    if (!shares) buffers_.push_back(make_buffer(interface_, slot.inputs * bytes_of(arguments_.dtype)));
    slot.input = buffers_.back().get();
    if (!in_place) buffers_.push_back(make_buffer(interface_, slot.outputs * bytes_of(arguments_.dtype)));
    slot.output = buffers_.back().get();
    slots_.push_back(std::move(slot));
  }

  Interface& interface_;
  const Arguments& arguments_;
  std::vector<Buffer> buffers_;
  std::vector<Slot> slots_;
};

void run_sample(Interface& interface, Mode mode, std::vector<Slot>& slots) {
  if (mode == Mode::blocking) {
    for (Slot& slot : slots) interface.run(slot);
    return;
  }
  for (Slot& slot : slots) interface.start(slot);
  interface.finish();
}

double timed_sample(Interface& interface, Mode mode, std::vector<Slot>& slots) {
  const auto start = std::chrono::steady_clock::now();
  run_sample(interface, mode, slots);
  return std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - start).count();
}

void check_results(Interface& interface, Mode mode, Slots& slots) {
  if (mode == Mode::blocking) {
    for (Slot& slot : slots.all()) {
      slots.fill(slot);
      interface.run(slot);
      slots.check(slot);
    }
    return;
  }
  for (Slot& slot : slots.all()) slots.fill(slot);
  run_sample(interface, mode, slots.all());
  for (const Slot& slot : slots.all()) slots.check(slot);
}

/// The number of samples to take next, after `done` of them; 0 for the end. Batches grow, because the first samples may
/// be far faster than the rest: with more ranks than cores, a wait takes nothing or a time slice.
long next_batch(const Arguments& arguments, long done, double elapsed_us) {
  const double remaining_us = arguments.budget_ms * 1000 - elapsed_us;
  if (remaining_us <= 0) return 0;
  const double fitting = remaining_us * static_cast<double>(done) / std::max(elapsed_us, 0.01);
  const long room = std::min(2 * done, arguments.max_iterations - done);
  return std::max(0L, static_cast<long>(std::min(fitting, static_cast<double>(room))));
}

/// Returns the time of all threads of this rank so far.
double processor_time_us() {
  timespec time{};
  ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) * 1e6 + static_cast<double>(time.tv_nsec) * 1e-3;
}

struct Samples {
  std::vector<double> times_us;
  double processor_us = 0;  ///< of this rank for one sample, on average
};

/// The first batch is for warming up. Rank 0 decides how many follow.
Samples take_samples(Interface& interface, const Arguments& arguments, std::vector<Slot>& slots) {
  for (long i = 0; i < arguments.min_iterations; ++i) run_sample(interface, arguments.mode, slots);
  interface.barrier();
  std::vector<double> times_us;
  times_us.reserve(static_cast<std::size_t>(arguments.max_iterations));
  double elapsed_us = 0;
  const double processor_before_us = processor_time_us();
  for (long batch = arguments.min_iterations; batch > 0;) {
    for (long i = 0; i < batch; ++i) {
      times_us.push_back(timed_sample(interface, arguments.mode, slots));
      elapsed_us += times_us.back();
    }
    batch =
        static_cast<long>(interface.of_rank_0(next_batch(arguments, static_cast<long>(times_us.size()), elapsed_us)));
  }
  const double processor_us = (processor_time_us() - processor_before_us) / static_cast<double>(times_us.size());
  return {std::move(times_us), processor_us};
}

/// Waits until the scheduler has spread the ranks of a new job over the cores. With four ranks on two cores three often
/// start on one of them and stay there for 50 to 100 ms, as long as a small size is measured.
void settle(Interface& interface, const Arguments& arguments) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::duration<double, std::milli>(arguments.budget_ms);
  while (interface.of_rank_0(std::chrono::steady_clock::now() < end ? 1 : 0) != 0) interface.barrier();
}

void print_samples(std::size_t bytes, std::size_t operations, const Samples& samples) {
  char number[64];
  std::snprintf(number, sizeof number, ", \"processor_us\": %.3f", samples.processor_us);
  std::string line =
      "{\"bytes\": " + std::to_string(bytes) + ", \"operations\": " + std::to_string(operations) + number;
  line += ", \"times_us\": [";
  for (std::size_t i = 0; i < samples.times_us.size(); ++i) {
    std::snprintf(number, sizeof number, "%s%.3f", i == 0 ? "" : ", ", samples.times_us[i]);
    line += number;
  }
  std::printf("%s]}\n", line.c_str());
  std::fflush(stdout);
}

void measure_size(Interface& interface, const Arguments& arguments, Size size) {
  Slots slots(interface, arguments, size);
  check_results(interface, arguments.mode, slots);
  slots.clear();
  const Samples samples = take_samples(interface, arguments, slots.all());
  if (interface.rank() == 0) print_samples(size.bytes, slots.all().size(), samples);
}

}  // namespace

void measure(Interface& interface, const Arguments& arguments) {
  const bool prints = interface.rank() == 0;
  if (prints) std::printf("{\"library\": \"%s\"}\n", interface.library().c_str());
  const std::string reason = interface.lacks();
  settle(interface, arguments);
  for (const Size& size : arguments.sizes) {
    if (reason.empty()) {
      measure_size(interface, arguments, size);
    } else if (prints) {
      std::printf("{\"bytes\": %zu, \"skipped\": \"%s\"}\n", size.bytes, reason.c_str());
    }
  }
}

}  // namespace runjob::benchmark
