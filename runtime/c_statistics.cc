#include <runjob/runjob.h>
#include <string>

#include <nlohmann/json.hpp>

#include "base/json_text.hpp"
#include "runtime/c_status.hpp"
#include "runtime/process.hpp"

namespace {

using namespace runjob::runtime;

/// Lent to the caller until its next call in the same thread.
thread_local std::string last_statistics;

}  // namespace

const char* runjob_statistics_json(void) {
  const runjob_code code = guarded([] {
    const Statistics statistics = Process::current().member_job()->engine->statistics();
    last_statistics = runjob::ordered_json_text({{"control_messages", statistics.control_messages},
                                                 {"rounds", statistics.rounds},
                                                 {"rounds_with_data", statistics.rounds_with_data},
                                                 {"planned_rounds", statistics.planned_rounds},
                                                 {"host_messages", statistics.host_messages},
                                                 {"host_bytes", statistics.host_bytes}});
    return runjob::Status();
  });
  return code == RUNJOB_OK ? last_statistics.c_str() : nullptr;
}
