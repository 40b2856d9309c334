#pragma once

#include <cstdint>

namespace runjob {

/// The default floating-point environment, in this thread, for the lifetime of the object: it rounds to nearest, keeps
/// denormals, and traps nothing. A program may have set another one: torch.set_flush_denormal(True) does, and so do
/// libraries that were built with -ffast-math. A new thread has that of its parent.
///
/// Threads  one, which destroys it too; then the thread has the environment of before.
/// Cost     a few instructions in a thread that has the default one.
/// Source   Intel's manual, volume 1, 10.2.3 (MXCSR); Arm's manual, FPCR. Elsewhere nothing is changed.
class DefaultFloatEnvironment {
 public:
  DefaultFloatEnvironment() : before_(read()) {
    if (!is_default(before_)) write(kDefault);
  }
  ~DefaultFloatEnvironment() {
    if (!is_default(before_)) write(before_);
  }
  DefaultFloatEnvironment(const DefaultFloatEnvironment&) = delete;
  DefaultFloatEnvironment& operator=(const DefaultFloatEnvironment&) = delete;

  /// True if this thread has the default one.
  static bool is_set() { return is_default(read()); }

 private:
  // The clobbers keep the compiler from moving loads and stores of operands across a change.
#if defined(__SSE__)
  using Register = std::uint32_t;
  static constexpr Register kDefault = 0x1f80, kControl = 0xffc0;  // the other bits are flags of what has happened
  static Register read() {
    return __builtin_ia32_stmxcsr();
  }
  static void write(Register value) {
    asm volatile("ldmxcsr %0" : : "m"(value) : "memory");
  }
#elif defined(__aarch64__)
  using Register = std::uint64_t;
  static constexpr Register kDefault = 0, kControl = ~Register{0};
  static Register read() {
    Register value = 0;
    asm volatile("mrs %0, fpcr" : "=r"(value));
    return value;
  }
  static void write(Register value) {
    asm volatile("msr fpcr, %0" : : "r"(value) : "memory");
  }
#else
  using Register = std::uint32_t;
  static constexpr Register kDefault = 0, kControl = 0;
  static Register read() {
    return kDefault;
  }
  static void write(Register) {}
#endif
  static bool is_default(Register value) {
    return (value & kControl) == kDefault;
  }

  const Register before_;
};

}  // namespace runjob
