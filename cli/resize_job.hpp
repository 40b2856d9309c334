#pragma once

#include <functional>
#include <string>
#include <vector>

namespace runjob {

/// Does `runjob resize JOB -np N | --add HOSTS | --remove HOSTS`: asks the launcher of a running elastic job of this
/// user on this host, and prints its answer. JOB is the job's id or the launcher's process number. `arguments` begin
/// with "resize". What is printed is one line that cannot steer a terminal. Returns the exit status.
/// Errors  kUsage in one line: a request that is none, an unknown job, one of another user, a size below --min-np, a
///         folder of sockets or a listening process that is not this user's.
int resize_job(const std::vector<std::string>& arguments, const std::function<void(const std::string&)>& print);

}  // namespace runjob
