#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "base/mutex.hpp"
#include "base/secrets/secret.hpp"
#include "rendezvous/hmac.hpp"

namespace runjob::runtime {

/// Proofs that serialized objects come from a rank of this job, unchanged, for this call: HMAC-SHA256, over the
/// object's BLAKE2b digest, with a key that the job's ranks alone have. The key does not leave this class. The number
/// of the call is in the proof, so that an earlier object of the same name is worth nothing.
/// Threads  any.
class ObjectSeals {
 public:
  /// `key`: of this job, or of this generation of it.
  explicit ObjectSeals(Secret key) : key_(key) {}

  /// A process set has been added. All ranks of the job call it in the same order, also those that are not in the set:
  /// the id may be that of a removed set, in which other ranks have counted calls.
  void begin_set(std::int32_t process_set);

  /// The number of this call of an operation on objects, which is the same on all ranks of the set, and of no other
  /// call of this name.
  std::int64_t next_number(const std::string& name, std::int32_t process_set);

  /// The proof of an object that `sender` gives in that call.
  rendezvous::Hmac::Bytes proof(const std::string& name, std::int32_t process_set, std::int32_t sender,
                                std::int64_t number, std::string_view object) const;

 private:
  const Secret key_;
  Mutex mutex_;
  std::int64_t sets_ GUARDED_BY(mutex_) = 0;                       ///< how many have been added
  std::map<std::int32_t, std::int64_t> first_ GUARDED_BY(mutex_);  ///< by process set: the number of the first call
  std::map<std::string, std::int64_t> counts_ GUARDED_BY(mutex_);  ///< by process set and name
};

}  // namespace runjob::runtime
