#include "runtime/job/autotune_report.hpp"

#include <cerrno>
#include <sys/stat.h>
#include <unistd.h>
#include <utility>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/files/named_file.hpp"
#include "base/log.hpp"

namespace runjob::runtime {
namespace {

constexpr double kMiB = 1 << 20;

/// The first seven are Horovod's.
/// Source  Horovod 0.28.1, horovod/common/parameter_manager.cc.
constexpr const char* kHeader =
    "hierarchical_allreduce,hierarchical_allgather,torus_allreduce,cache_enabled,cycle_time_ms,tensor_fusion_threshold,"
    "score,bucket_mb,step_ms";

std::string first_remark(const RuntimeConfig& config, int size) {
  if (config.given_bucket_bytes) return "--bucket-mb has set the size of the buckets";
  if (size == 1) return "the job has one rank";
  return "no DistributedOptimizer of PyTorch has reduced gradients over all ranks; nothing else is tuned, and "
         "TensorFlow's functions fix their groups of gradients when they are traced";
}

}  // namespace

AutotuneReport::AutotuneReport(const RuntimeConfig& config, int size, bool has_hosts, bool continues)
    : settings_(config.autotune),
      most_bucket_bytes_(config.fusion.threshold_bytes),
      is_needed_(!config.given_bucket_bytes && size > 1),
      values_(fmt::format("{:d},{:d},0,{:d},{:g},{:g}", config.hierarchical_allreduce && has_hosts,
                          config.hierarchical_allgather && has_hosts, config.cache_capacity > 0,
                          static_cast<double>(config.cycle_time.count()) / 1000,
                          static_cast<double>(config.fusion.threshold_bytes) / kMiB)),
      remark_(fmt::format("--autotune has tuned nothing: {}", first_remark(config, size))) {
  if (!settings_.log) return;
  const MutexLock lock(mutex_);
  log_ = open_named_file(*settings_.log, "RUNJOB_AUTOTUNE_LOG", continues ? Existing::kContinue : Existing::kEmpty);
  struct stat info {};
  if (::fstat(log_.get(), &info) == 0 && info.st_size == 0) write(kHeader);
}

void AutotuneReport::add_sample(std::uint64_t bucket_bytes, double step_milliseconds, std::uint64_t step_bytes) {
  const MutexLock lock(mutex_);
  if (!log_) return;
  const double score = static_cast<double>(step_bytes) / (step_milliseconds * 1000);
  write(fmt::format("{},{:.4g},{:g},{:.4g}", values_, score, static_cast<double>(bucket_bytes) / kMiB,
                    step_milliseconds));
}

void AutotuneReport::set_remark(std::string remark) {
  const MutexLock lock(mutex_);
  remark_ = std::move(remark);
}

void AutotuneReport::end() {
  const MutexLock lock(mutex_);
  if (!remark_.empty()) log::warn("{}", std::exchange(remark_, {}));
}

void AutotuneReport::write(const std::string& line) {
  const std::string text = line + "\n";
  std::size_t done = 0;
  while (done < text.size()) {
    const ssize_t count = ::write(log_.get(), text.data() + done, text.size() - done);
    if (count < 0 && errno != EINTR) throw system_error(fmt::format("writing '{}'", *settings_.log), errno);
    if (count > 0) done += static_cast<std::size_t>(count);
  }
}

}  // namespace runjob::runtime
