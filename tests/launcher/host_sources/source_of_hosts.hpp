#pragma once

#include <functional>
#include <string>
#include <vector>

#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>

#include "base/log.hpp"
#include "launcher/elastic/host_changes.hpp"
#include "tests/launcher/elastic/scripted_membership.hpp"

namespace runjob {

/// An elastic job on hosts that nobody has, for the sources that change them.
struct JobOfSource {
  explicit JobOfSource(const std::string& host_list)
      : job(host_list, elastic(1, 8)),
        changes(
            job.allocation.hosts, elastic(1, 8), job.membership,
            {[this] { return job.now; }, [](const Host&) { return ""; }, [](const Host&) {}, [this] { ++changed; }}) {}

  /// Runs the loop until `done`, a minute at most. Returns the names of the hosts that may be used.
  std::vector<std::string> run_until(const std::function<bool()>& done) {
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    context.restart();
    while (!done() && std::chrono::steady_clock::now() < end) context.run_one_for(std::chrono::milliseconds(100));
    return usable();
  }
  std::vector<std::string> usable() const {
    std::vector<std::string> names;
    for (const auto& [index, host] : job.membership.roll().hosts) {
      if (host.usable) names.push_back(host.name);
    }
    return names;
  }

  boost::asio::io_context context;
  ScriptedMembership job;
  int changed = 0;
  HostChanges changes;
};

}  // namespace runjob
