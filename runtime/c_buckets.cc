#include <runjob/runjob.h>
#include <string>

#include <nlohmann/json.hpp>

#include "base/error.hpp"
#include "base/json_text.hpp"
#include "runtime/c_status.hpp"
#include "runtime/process.hpp"

namespace {

using namespace runjob::runtime;

/// Lent to the caller until its next call in the same thread.
thread_local std::string last_settings;

nlohmann::ordered_json search_of(const AutotuneReport* report) {
  if (report == nullptr || !report->is_needed()) return nullptr;
  const AutotuneSettings& settings = report->settings();
  return {{"warmup_samples", settings.warmup_samples},
          {"steps_per_sample", settings.steps_per_sample},
          {"most_samples", settings.most_samples},
          {"most_bucket_bytes", report->most_bucket_bytes()}};
}

}  // namespace

const char* runjob_bucket_settings_json(void) {
  const runjob_code code = guarded([] {
    const std::shared_ptr<const Job> job = Process::current().job();
    if (!job) throw runjob::Error(runjob::Errc::kNotInitialized, "runjob is not initialized: call init() first");
    last_settings =
        runjob::ordered_json_text({{"bucket_bytes", job->bucket_bytes}, {"autotune", search_of(job->autotune.get())}});
    return runjob::Status();
  });
  return code == RUNJOB_OK ? last_settings.c_str() : nullptr;
}

runjob_code runjob_autotune_sample(int64_t bucket_bytes, double step_milliseconds, int64_t step_bytes) {
  return guarded([&] {
    if (bucket_bytes < 0 || !(step_milliseconds > 0) || step_bytes < 0)
      throw runjob::Error(runjob::Errc::kInvalidArgument,
                          "a sample of a step has a time above 0, and numbers of bytes");
    const std::shared_ptr<AutotuneReport> report = Process::current().member_job()->autotune;
    if (report)
      report->add_sample(static_cast<std::uint64_t>(bucket_bytes), step_milliseconds,
                         static_cast<std::uint64_t>(step_bytes));
    return runjob::Status();
  });
}

runjob_code runjob_autotune_remark(const char* remark) {
  return guarded([&] {
    const std::shared_ptr<AutotuneReport> report = Process::current().member_job()->autotune;
    if (report) report->set_remark(remark == nullptr ? "" : remark);
    return runjob::Status();
  });
}
