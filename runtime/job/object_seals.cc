#include "runtime/job/object_seals.hpp"

#include <string>

namespace runjob::runtime {

std::int64_t ObjectSeals::next_number(const std::string& name, std::int32_t process_set) {
  const MutexLock lock(mutex_);
  return numbers_[std::to_string(process_set) + ' ' + name]++;
}

rendezvous::Hmac::Bytes ObjectSeals::proof(const std::string& name, std::int32_t process_set, std::int32_t sender,
                                           std::int64_t number, std::string_view object) const {
  return rendezvous::Hmac(key_, "runjob objects 2: proof")
      .add(name)
      .number(static_cast<std::uint32_t>(process_set))
      .number(static_cast<std::uint32_t>(sender))
      .number(static_cast<std::uint64_t>(number))
      .add_digest(object)
      .result();
}

}  // namespace runjob::runtime
