#pragma once

namespace runjob {

/// Sends SIGKILL to the processes below this one that belong to the process with this number of an elastic job: those
/// whose environment has RUNJOB_PROCESS_NUMBER=`number`. Reads /proc. Processes that have cleared their environment end
/// with the job.
void kill_leftovers(int number);

}  // namespace runjob
