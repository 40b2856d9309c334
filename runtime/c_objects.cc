#include <algorithm>
#include <runjob/runjob.h>

#include "runtime/c_status.hpp"
#include "runtime/process.hpp"

using namespace runjob::runtime;

runjob_code runjob_object_number(const char* name, int32_t process_set, int64_t* number) {
  return guarded([&] {
    *number = Process::current().member_job()->object_seals->next_number(name, process_set);
    return runjob::Status();
  });
}

runjob_code runjob_object_proof(const char* name, int32_t process_set, int32_t sender, int64_t number,
                                const void* object, size_t bytes, unsigned char* proof) {
  return guarded([&] {
    const auto made = Process::current().member_job()->object_seals->proof(name, process_set, sender, number,
                                                                           {static_cast<const char*>(object), bytes});
    std::copy(made.begin(), made.end(), proof);
    return runjob::Status();
  });
}
