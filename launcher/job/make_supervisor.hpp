#pragma once

#include <memory>

#include <boost/asio/any_io_executor.hpp>

#include "launcher/channel/alarm.hpp"
#include "launcher/job/host_agents.hpp"
#include "launcher/job/rank_launch.hpp"
#include "launcher/job_spec/job_spec.hpp"
#include "launcher/output/output_relay.hpp"
#include "launcher/supervision/supervisor.hpp"

namespace runjob {

/// The supervisor of a job of fixed size, or of an elastic one. The latter starts and ends processes through `agents`
/// and `launch`, and shows their ranks in the tags of `output`. The times that either watches do not count `stopped`.
/// All arguments outlive it.
std::unique_ptr<Supervisor> make_supervisor(const boost::asio::any_io_executor& executor, const JobSpec& spec,
                                            const StoppedTime& stopped, HostAgents& agents, RankLaunch& launch,
                                            OutputRelay& output, Supervisor::EndRanksBecause end_ranks);

}  // namespace runjob
