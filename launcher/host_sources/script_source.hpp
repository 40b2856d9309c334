#pragma once

#include <string>

#include <boost/asio/any_io_executor.hpp>

#include "base/environment.hpp"
#include "launcher/elastic/host_source.hpp"
#include "launcher/host_sources/discovery_script.hpp"

namespace runjob {

/// The discovery script of an elastic job while it runs: each of its lists replaces the list of hosts.
/// Owner    as HostSource: the supervisor.
/// Threads  the executor's one thread.
/// Errors   none is thrown. A failure of the script, a list that is not valid and an empty one are warnings, and the
///          hosts stay as they are. The same warning is not repeated until a valid list, or another warning, has come.
class ScriptSource : public HostSource {
 public:
  /// `changes` outlives this object. `slots_per_host`: for hosts of a list without a number.
  ScriptSource(boost::asio::any_io_executor executor, const std::string& command, const Environment& environment,
               int slots_per_host, HostChanges& changes);

  void start() override { script_.start(); }
  void stop() override { script_.stop(); }

 private:
  void on_list(const std::string& list);
  void on_trouble(const std::string& what);

  const std::string name_;
  const int slots_per_host_;
  HostChanges& changes_;
  std::string trouble_;  // that has been reported
  DiscoveryScript script_;
};

}  // namespace runjob
