#include <algorithm>
#include <runjob/runjob.h>
#include <span>
#include <vector>

#include <fmt/format.h>

#include "base/error.hpp"
#include "runtime/c_status.hpp"
#include "runtime/job/state_transfer.hpp"
#include "runtime/process.hpp"

/// The C interface of elastic jobs.

namespace {

using namespace runjob::runtime;
using runjob::Errc;
using runjob::Error;
using runjob::Status;

/// Blocks without memory are allowed on a rank that neither sends nor receives.
std::vector<std::span<std::byte>> to_blocks(void* const* blocks, const int64_t* bytes, int32_t count, bool is_used) {
  if (count < 0 || (count > 0 && (bytes == nullptr || (is_used && blocks == nullptr))))
    throw Error(Errc::kInvalidArgument, fmt::format("a state of {} blocks has no addresses or no sizes", count));
  std::vector<std::span<std::byte>> result;
  for (int32_t i = 0; i < count; ++i) {
    if (bytes[i] < 0 || (is_used && bytes[i] > 0 && blocks[i] == nullptr))
      throw Error(Errc::kInvalidArgument, fmt::format("block {} of a state has {} bytes and no memory", i, bytes[i]));
    result.emplace_back(is_used ? static_cast<std::byte*>(blocks[i]) : nullptr, static_cast<std::size_t>(bytes[i]));
  }
  return result;
}

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

runjob_code runjob_elastic_transfer(void* const* blocks, const int64_t* bytes, int32_t count, int32_t lacks) {
  return guarded([&] {
    Process::current().with_job([&](const Job& job) {
      transfer_state(job, to_blocks(blocks, bytes, count, lacks != 0 || job.place.rank == 0), lacks != 0);
    });
    return Status();
  });
}
