#include "runtime/job/object_seals.hpp"

#include <map>
#include <string>

namespace runjob::runtime {
namespace {

/// The beginning of the names of all calls in a process set.
std::string prefix_of(std::int32_t process_set) {
  return std::to_string(process_set) + ' ';
}

}  // namespace

void ObjectSeals::begin_set(std::int32_t process_set) {
  constexpr std::int64_t kMostCalls = std::int64_t{1} << 32;
  const MutexLock lock(mutex_);
  first_[process_set] = ++sets_ * kMostCalls;
  std::erase_if(counts_, [&](const auto& count) { return count.first.starts_with(prefix_of(process_set)); });
}

std::int64_t ObjectSeals::next_number(const std::string& name, std::int32_t process_set) {
  const MutexLock lock(mutex_);
  return first_[process_set] + counts_[prefix_of(process_set) + name]++;
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
