#include "hostfile/batch_job.hpp"

#include <string_view>

#include <fmt/format.h>

#include "base/error.hpp"
#include "hostfile/grid_engine_allocation.hpp"
#include "hostfile/lsf_allocation.hpp"
#include "hostfile/pbs_allocation.hpp"
#include "hostfile/read_hostfile.hpp"

namespace runjob {
namespace {

/// The value of the variable with the job's hosts. `job`: "PBS job 7".
std::string list_of(const Environment& environment, const char* variable, const std::string& job) {
  const std::string_view value = value_of(environment, variable);
  if (!value.empty()) return std::string(value);
  throw Error(
      Errc::kUsage,
      fmt::format("{} names no hosts: {} is not set; pass it on to runjob, or name the hosts with -H", job, variable));
}

/// The hosts in the file that `variable` names. Messages call it "PBS_NODEFILE /var/spool/pbs/aux/7".
template <class Parse>
std::vector<Host> hosts_of_file(const char* variable, const std::string& path, Parse parse) {
  return parse(read_host_text(path, variable, path).text, fmt::format("{} {}", variable, path));
}

}  // namespace

std::optional<BatchJob> read_batch_job(const Environment& environment) {
  if (std::string id(value_of(environment, "PBS_JOBID")); !id.empty()) {
    const std::string path = list_of(environment, "PBS_NODEFILE", "PBS job " + id);
    return BatchJob{"PBS", std::move(id), hosts_of_file("PBS_NODEFILE", path, parse_pbs_nodes)};
  }
  if (const std::string path(value_of(environment, "PE_HOSTFILE")); !path.empty())
    return BatchJob{"Grid Engine", std::string(value_of(environment, "JOB_ID")),
                    hosts_of_file("PE_HOSTFILE", path, parse_grid_engine_hosts)};
  if (std::string id(value_of(environment, "LSB_JOBID")); !id.empty()) {
    const std::string list = list_of(environment, "LSB_MCPU_HOSTS", "LSF job " + id);
    return BatchJob{"LSF", std::move(id), parse_lsf_hosts(list, "LSB_MCPU_HOSTS")};
  }
  return std::nullopt;
}

}  // namespace runjob
