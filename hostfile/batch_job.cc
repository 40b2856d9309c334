#include "hostfile/batch_job.hpp"

#include <string_view>
#include <sys/stat.h>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/files/trusted_file.hpp"
#include "base/read_file.hpp"
#include "hostfile/grid_engine_allocation.hpp"
#include "hostfile/lsf_allocation.hpp"
#include "hostfile/pbs_allocation.hpp"

namespace runjob {
namespace {

/// "" when it is not set.
std::string value_of(const Environment& environment, const char* name) {
  const auto found = environment.find(name);
  return found == environment.end() ? "" : found->second;
}

/// The value of the variable with the job's hosts. `job`: "PBS job 7".
std::string list_of(const Environment& environment, const char* variable, const std::string& job) {
  std::string value = value_of(environment, variable);
  if (!value.empty()) return value;
  throw Error(
      Errc::kUsage,
      fmt::format("{} names no hosts: {} is not set; pass it on to runjob, or name the hosts with -H", job, variable));
}

/// The hosts in the file that `variable` names. Messages call it "PBS_NODEFILE /var/spool/pbs/aux/7".
template <class Parse>
std::vector<Host> hosts_of_file(const char* variable, const std::string& path, Parse parse) {
  const std::string name = fmt::format("{} {}", variable, path);
  const auto check_mode = [&](int file, const struct ::stat& info) {
    const std::string reason = reason_others_may_write(file, info, path);
    if (!reason.empty()) throw Error(Errc::kUsage, fmt::format("bad permissions on {}: {}", name, reason));
  };
  return parse(read_file(path, variable, check_mode), name);
}

}  // namespace

std::optional<BatchJob> read_batch_job(const Environment& environment) {
  if (std::string id = value_of(environment, "PBS_JOBID"); !id.empty()) {
    const std::string path = list_of(environment, "PBS_NODEFILE", "PBS job " + id);
    return BatchJob{"PBS", std::move(id), hosts_of_file("PBS_NODEFILE", path, parse_pbs_nodes)};
  }
  if (const std::string path = value_of(environment, "PE_HOSTFILE"); !path.empty())
    return BatchJob{"Grid Engine", value_of(environment, "JOB_ID"),
                    hosts_of_file("PE_HOSTFILE", path, parse_grid_engine_hosts)};
  if (std::string id = value_of(environment, "LSB_JOBID"); !id.empty()) {
    const std::string list = list_of(environment, "LSB_MCPU_HOSTS", "LSF job " + id);
    return BatchJob{"LSF", std::move(id), parse_lsf_hosts(list, "LSB_MCPU_HOSTS")};
  }
  return std::nullopt;
}

}  // namespace runjob
