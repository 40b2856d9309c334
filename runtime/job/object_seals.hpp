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

  /// The number of this call of an operation on objects, from 0, which is the same on all ranks of the set.
  std::int64_t next_number(const std::string& name, std::int32_t process_set);

  /// The proof of an object that `sender` gives in that call.
  rendezvous::Hmac::Bytes proof(const std::string& name, std::int32_t process_set, std::int32_t sender,
                                std::int64_t number, std::string_view object) const;

 private:
  const Secret key_;
  Mutex mutex_;
  std::map<std::string, std::int64_t> numbers_ GUARDED_BY(mutex_);  // by process set and name
};

}  // namespace runjob::runtime
