#pragma once

#include <cstddef>
#include <cstdint>

/// The part of PMIx's client interface that runjob uses. It is declared here, so that runjob is built without PMIx's
/// headers and runs with any libpmix.so.2 that an MPI has: these declarations are the same from PMIx 3.0 to 5.0. A test
/// compares them with the installed headers.
///
/// Owner    The arguments of a request belong to the caller and must not change until its callback: see PmixPromise.
///          A value that a callback receives belongs to the library, and is lent until the callback returns.
/// Threads  The library calls callbacks on a thread of its own. They must not block, and no exception may leave them.
/// Source   PMIx standard 4.1, chapters 3 (constants, pmix_proc_t, pmix_value_t, pmix_info_t), 5 (PMIx_Init), 7 (put,
///          commit, get) and 8 (fence), 9 (events); the names of OpenPMIx 4.2.2's include/pmix_common.h.
namespace runjob::pmix {

inline constexpr std::size_t kMaxNamespaceBytes = 256, kMaxKeyBytes = 512;  ///< including the terminating zero

using Status = int;
inline constexpr Status kSuccess = 0, kUnreachable = -25, kOperationSucceeded = -157;

inline constexpr std::uint32_t kRankWildcard = UINT32_MAX - 1;  ///< the job itself, not one of its ranks

inline constexpr std::uint16_t kBool = 1, kUint32 = 14, kByteObject = 27;  ///< types of values

inline constexpr std::uint8_t kScopeGlobal = 3;  ///< for ranks of this host and of others

inline constexpr char kJobSizeKey[] = "pmix.job.size", kCollectDataKey[] = "pmix.collect";

struct Proc {
  char name_space[kMaxNamespaceBytes];
  std::uint32_t rank;
};

struct ByteObject {
  char* bytes;
  std::size_t size;
};

struct Value {
  std::uint16_t type;
  union {
    bool flag;
    std::uint32_t uint32;
    ByteObject bytes;
    std::uint64_t room[4];  // the library's union may be smaller, so it gets at most one of these
  } data;
};

struct Info {
  char key[kMaxKeyBytes];
  std::uint32_t flags;
  Value value;
};

/// The launcher's daemon is lost; the second code is PMIx 3's.
inline constexpr Status kLostConnection = -61, kLostConnectionToServer = -101;

using OperationDone = void (*)(Status status, void* context);
using ValueFound = void (*)(Status status, Value* value, void* context);
/// The function that an event handler calls at its end.
using EventHandled = void (*)(Status status, Info* results, std::size_t count, OperationDone done, void* context,
                              void* of_notification);
using EventHandler = void (*)(std::size_t handler, Status status, const Proc* source, Info* info, std::size_t count,
                              Info* results, std::size_t result_count, EventHandled handled, void* of_notification);
using EventHandlerAdded = void (*)(Status status, std::size_t handler, void* context);

}  // namespace runjob::pmix
