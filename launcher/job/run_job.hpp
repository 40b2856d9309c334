#pragma once

#include "launcher/job/host_connector.hpp"
#include "launcher/job_spec/job_spec.hpp"

namespace runjob {

/// Starts the job's ranks, relays their output, input and signals, and returns when nothing of the job is left.
/// `make_connector` is needed when there are hosts other than this one.
/// Returns  the exit status of docs/exit-status.md.
/// Threads  the calling one, which runs everything; SIGINT, SIGTERM, SIGCHLD and SIGPIPE belong to it meanwhile.
/// Errors   prints them; throws Error only if a start is impossible (exit status 125).
int run_job(const JobSpec& spec, const MakeHostConnector& make_connector);

}  // namespace runjob
