#include <algorithm>
#include <runjob/runjob.h>

#include "base/error.hpp"
#include "runtime/c_status.hpp"
#include "runtime/process.hpp"

/// The C interface of elastic jobs.

namespace {

using namespace runjob::runtime;
using runjob::Errc;
using runjob::Error;
using runjob::Status;

}  // namespace

int runjob_elastic(void) {
  if (!Process::current().job()) return -1;
  return Process::current().is_elastic() ? 1 : 0;
}

int runjob_generation(void) {
  const std::shared_ptr<const Job> job = Process::current().job();
  return job && !job->place.waiting ? job->place.generation : -1;
}

runjob_code runjob_elastic_enter(void) {
  return guarded([] {
    Process::current().elastic_enter();
    return Status();
  });
}

runjob_code runjob_elastic_meet(int64_t commit, const char* reason) {
  return guarded([&] {
    Process::current().elastic_meet(commit, reason == nullptr ? "" : reason);
    return Status();
  });
}

runjob_code runjob_elastic_steps(int64_t steps) {
  return guarded([&] {
    Process::current().elastic_steps(steps);
    return Status();
  });
}

runjob_code runjob_elastic_pending(int32_t* update, int32_t* leaving) {
  return guarded([&] {
    if (update == nullptr || leaving == nullptr)
      throw Error(Errc::kInvalidArgument, "a pending update needs somewhere to be put");
    const NoticeWatch::Pending pending = Process::current().elastic_pending();
    const int32_t kind = pending.only_added ? 1 : 2;
    *update = pending.is_outdated ? kind : 0;
    *leaving = pending.leaving ? 1 : 0;
    return Status();
  });
}

runjob_code runjob_elastic_commits(int64_t* commits) {
  return guarded([&] {
    if (commits == nullptr) throw Error(Errc::kInvalidArgument, "the commits need somewhere to be put");
    const std::shared_ptr<const Job> job = Process::current().member_job();
    const std::vector<std::int64_t>& brought = job->place.commits;
    std::fill_n(commits, job->place.size, -1);
    std::copy_n(brought.begin(), std::min(brought.size(), static_cast<std::size_t>(job->place.size)), commits);
    return Status();
  });
}
