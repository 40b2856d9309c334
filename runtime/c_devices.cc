#include <runjob/runjob.h>

#include "runtime/c_operation.hpp"
#include "runtime/process.hpp"

/// The part of the C interface that waits for GPUs. No logic, as in c_api.cc.

namespace {

using namespace runjob::runtime;
using runjob::Status;

}  // namespace

runjob_code runjob_check(double timeout_seconds) {
  bool is_in_flight = false;
  const runjob_code code = guarded([&] {
    const Engine::Deadline deadline = to_deadline(timeout_seconds);
    const std::shared_ptr<const Job> job = Process::current().member_job();
    std::vector<std::shared_ptr<Engine>> engines = job->process_sets->engines();
    engines.push_back(job->engine);
    Status failed;
    for (const auto& engine : engines) {
      const std::optional<Status> outcome = engine->settle(deadline);
      is_in_flight = is_in_flight || !outcome;
      if (outcome && failed.ok()) failed = *outcome;
    }
    Process::current().report_loss(failed);
    return failed;
  });
  return code == RUNJOB_OK && is_in_flight ? RUNJOB_IN_PROGRESS : code;
}

runjob_code runjob_wait_on_stream(runjob_handle handle, void* stream, double timeout_seconds) {
  return guarded_wait(handle, timeout_seconds,
                      [stream](Completion& completion, const Engine::Deadline& /*deadline*/) -> std::optional<Status> {
                        return completion.work() ? completion.work()->wait_on(stream) : Status();
                      });
}
