#pragma once

#include <span>

namespace runjob::runtime::cuda {

/// A maker of GPUs: the facts about its driver and its library of collectives on which runjob relies. driver_abi.hpp
/// and nccl/nccl_abi.hpp declare the functions. A value; the driver and a rank's offer have one. The first version
/// with something is INT_MAX if there is none.
struct Vendor {
  const char* name;
  const char* platform;  ///< the interface of its driver, for people
  /// Names by which the loader finds the driver, the preferred one first. The first one stands in messages.
  std::span<const char* const> driver_files;
  int oldest_driver;  ///< that serves
  /// Errors of the driver after which a context is of no more use, and with the primary context the process.
  std::span<const int> lost_context_errors;
  /// Errors of a GPU that has left the bus, was taken away or broke.
  std::span<const int> lost_gpu_errors;
  const char* where_to_look;                   ///< after such an error, for people
  std::span<const char* const> library_files;  ///< of the library of collectives, likewise
  int oldest_library;                          ///< that serves
  int revoking_library;                        ///< the first one with ncclCommRevoke()
  /// The first one in which several ranks of a communicator may use one GPU.
  int sharing_library;
};

inline constexpr const char* kNvidiaDriver[] = {"libcuda.so.1"};
inline constexpr const char* kNvidiaLibrary[] = {"libnccl.so.2"};
inline constexpr int kNvidiaLostContext[] = {700, 701, 702, 709, 710, 714, 715, 716, 717, 718, 719};
/// Device unavailable, no device, invalid device, uncorrectable ECC error, system not ready.
inline constexpr int kNvidiaLostGpu[] = {46, 100, 101, 214, 802};

/// Source  CUDA driver API 13.0, CUresult; release notes of NCCL 2.18 to 2.30.
inline constexpr Vendor kNvidia = {.name = "NVIDIA",
                                   .platform = "CUDA",
                                   .driver_files = kNvidiaDriver,
                                   .oldest_driver = 12000,
                                   .lost_context_errors = kNvidiaLostContext,
                                   .lost_gpu_errors = kNvidiaLostGpu,
                                   .where_to_look = "nvidia-smi, and NVRM in the kernel's log of this host",
                                   .library_files = kNvidiaLibrary,
                                   .oldest_library = 21800,
                                   .revoking_library = 22809,
                                   .sharing_library = 23003};

/// All of them; a rank's offer names one.
inline constexpr const Vendor* kVendors[] = {&kNvidia};

}  // namespace runjob::runtime::cuda
