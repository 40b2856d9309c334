#pragma once

/// The facts about NVIDIA's libraries on which runjob relies: their files, their oldest versions, and the driver's
/// errors that end the use of a GPU. driver_abi.hpp and nccl/nccl_abi.hpp declare their functions.
///
/// Source  CUDA driver API 13.0, CUresult; release notes of NCCL 2.18 to 2.30.
namespace runjob::runtime::nvidia {

inline constexpr char kDriverFile[] = "libcuda.so.1", kNcclFile[] = "libnccl.so.2";

/// The oldest that serve: CUDA 12.0, and NCCL 2.18.
inline constexpr int kOldestDriver = 12000, kOldestNccl = 21800;
/// The first NCCL with ncclCommRevoke().
inline constexpr int kRevokingNccl = 22809;
/// The first NCCL in which several ranks of a communicator may use one GPU.
inline constexpr int kSharedGpuNccl = 23003;
/// The first NCCL that can let kernels of several communicators begin in the order of their launches.
inline constexpr int kOrderedNccl = 22600;

/// Errors of the driver after which a context is of no more use, and with the primary context the process.
inline constexpr int kLostContextErrors[] = {700, 701, 702, 709, 710, 714, 715, 716, 717, 718, 719};
/// Errors of a GPU that has left the bus, was taken away or broke: device unavailable, no device, invalid device,
/// uncorrectable ECC error, system not ready.
inline constexpr int kLostGpuErrors[] = {46, 100, 101, 214, 802};

}  // namespace runjob::runtime::nvidia
