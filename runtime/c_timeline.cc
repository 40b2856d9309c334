#include <runjob/runjob.h>

#include "base/error.hpp"
#include "runtime/c_status.hpp"
#include "runtime/process.hpp"

using namespace runjob::runtime;

runjob_code runjob_start_timeline(const char* path, int mark_cycles, int all_ranks) {
  return guarded([&] {
    if (path == nullptr || *path == '\0')
      throw runjob::Error(runjob::Errc::kInvalidArgument, "a timeline needs a file");
    const std::shared_ptr<const Job> job = Process::current().member_job();
    Timeline::Options options = job->timeline_options;
    options.path = path;
    options.what = "runjob_start_timeline";
    options.mark_cycles = mark_cycles != 0;
    options.all_ranks = all_ranks != 0;
    job->timeline->start(options);
    return runjob::Status();
  });
}

runjob_code runjob_stop_timeline(void) {
  return guarded([] {
    Process::current().member_job()->timeline->stop();
    return runjob::Status();
  });
}
