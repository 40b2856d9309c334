#include <runjob/runjob.h>

#include "base/error.hpp"
#include "runtime/c_status.hpp"
#include "runtime/process.hpp"

using namespace runjob::runtime;

namespace {

/// Errors  Error(kInvalidArgument).
int checked_dtype(int32_t number) {
  if (!is_dtype(number))
    throw runjob::Error(runjob::Errc::kInvalidArgument, "a tensor in the timeline has a dtype that does not exist");
  return number;
}

}  // namespace

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

runjob_code runjob_timeline_tensors(const char* name, const char* const* names, const runjob_tensor* tensors,
                                    const int64_t* since_ns, int32_t count, int32_t process_set) {
  return guarded([&] {
    if (name == nullptr || count < 0 || (count > 0 && (names == nullptr || tensors == nullptr || since_ns == nullptr)))
      throw runjob::Error(runjob::Errc::kInvalidArgument, "the tensors of a row in the timeline need names and shapes");
    const std::shared_ptr<const Job> job = Process::current().member_job();
    std::vector<TracedTensor> traced;
    for (int32_t i = 0; i < count; ++i) {
      const runjob_tensor& tensor = tensors[i];
      if (names[i] == nullptr || tensor.ndim < 0 || (tensor.ndim > 0 && tensor.shape == nullptr))
        throw runjob::Error(runjob::Errc::kInvalidArgument, "a tensor in the timeline needs a name and a shape");
      traced.push_back({names[i], static_cast<DType>(checked_dtype(tensor.dtype)),
                        Shape(tensor.shape, tensor.shape + tensor.ndim), since_ns[i]});
    }
    EngineTimeline(job->timeline, process_set).set_tensors(name, std::move(traced));
    return runjob::Status();
  });
}

int runjob_timeline_records_tensors(void) {
  const std::shared_ptr<const Job> job = Process::current().job();
  return job && job->timeline && job->timeline->records_ranks() ? 1 : 0;
}

runjob_code runjob_stop_timeline(void) {
  return guarded([] {
    Process::current().member_job()->timeline->stop();
    return runjob::Status();
  });
}
