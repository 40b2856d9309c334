#include "launcher/run_job.hpp"

#include <signal.h>

#include "base/standard_descriptors.hpp"
#include "launcher/job.hpp"

namespace runjob {

int run_job(const JobSpec& spec) {
  open_standard_descriptors();
  ::signal(SIGPIPE, SIG_IGN);
  Job job(spec);
  return job.run();
}

}  // namespace runjob
