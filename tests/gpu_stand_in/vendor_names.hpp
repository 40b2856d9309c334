#pragma once

/// The names of the vendor whose libraries the stand-ins stand for: the texts that the tests of GPUs expect. The program
/// of the same tests over another vendor's stand-ins has other values.
namespace stand_in {

inline constexpr char kPlatform[] = "CUDA";
inline constexpr char kDriverFile[] = "libcuda.so.1", kLibraryFile[] = "libnccl.so.2";
/// An error of a GPU that is gone and one that loses it to the process: the numbers, and the driver's names.
inline constexpr int kGoneError = 46, kLostError = 700;
inline constexpr char kGoneName[] = "CUDA_ERROR_DEVICE_UNAVAILABLE", kLostName[] = "CUDA_ERROR_ILLEGAL_ADDRESS";
/// The first GPU in messages, up to where its text differs from those of the others.
inline constexpr char kFirstGpu[] = "GPU 0 (GPU-00000000-";
inline constexpr char kWhereToLook[] = "nvidia-smi";
inline constexpr char kNoGpu[] = "cuInit(): no CUDA-capable device is detected";
/// A version of the driver that is too old, and the error about it.
inline constexpr char kOldDriver[] = "11080", kOldDriverText[] = "supports CUDA 11.8, and runjob needs 12.0 or newer";

}  // namespace stand_in
