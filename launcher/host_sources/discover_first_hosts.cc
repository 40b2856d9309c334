#include "launcher/host_sources/discover_first_hosts.hpp"

#include <optional>
#include <signal.h>
#include <utility>

#include <boost/asio/io_context.hpp>
#include <boost/asio/signal_set.hpp>
#include <fmt/format.h>

#include "base/error.hpp"
#include "base/screen_text.hpp"
#include "hostfile/parse_hosts.hpp"
#include "launcher/host_sources/discovery_script.hpp"
#include "launcher/job_spec/horovod_words.hpp"
#include "launcher/processes/ignored_signal.hpp"

namespace runjob {
std::vector<Host> discover_first_hosts(const FirstHosts& wanted, const Environment& environment,
                                       const std::function<void(const std::string&)>& warn) {
  boost::asio::io_context context;
  std::vector<Host> hosts;
  std::optional<Error> failure;
  bool first = true, enough = false;
  const double patience = std::chrono::duration<double>(wanted.patience).count();
  const auto on_failure = [&](const std::string& why) {
    if (std::exchange(first, false)) {
      failure.emplace(Errc::kUsage, fmt::format("{}: the first run of '{}' {}", wanted.place, wanted.script, why));
      return context.stop();
    }
    warn(fmt::format("{}: '{}' {}; trying again", wanted.place, wanted.script, why));
  };
  const auto on_list = [&](const std::string& list) {
    const bool was_first = std::exchange(first, false);
    try {
      hosts = parse_discovered_hosts(list, fmt::format("{}: '{}'", wanted.place, wanted.script), wanted.slots_per_host);
    } catch (const Error& error) {
      if (!was_first) return warn(fmt::format("{}; trying again", error.what()));
      failure.emplace(Errc::kUsage, fmt::format("{}; the script prints one host a line, such as s1:4", error.what()));
      return context.stop();
    }
    enough = count_slots(hosts) >= wanted.slots;
    if (enough) return context.stop();
    if (was_first) {
      warn(fmt::format("{}: '{}' lists {} of the {} that the job needs; waiting up to {:.3g} s for more", wanted.place,
                       wanted.script, count_slots(hosts), counted(wanted.slots, "slot"), patience));
    }
  };
  DiscoveryScript script(context.get_executor(), wanted.script, environment, {on_list, on_failure});
  boost::asio::signal_set end_signals(context);
  for (const int number : {SIGINT, SIGTERM, SIGHUP}) {
    if (!is_ignored(number)) end_signals.add(number);
  }
  int ended_by = 0;
  end_signals.async_wait([&](boost::system::error_code error, int number) {
    if (error) return;
    ended_by = number;
    context.stop();
  });
  script.start();
  context.run_for(wanted.patience);
  script.stop();
  end_signals.clear();
  if (ended_by != 0) ::raise(ended_by);  // its default action ends this process
  if (failure) throw Error(*failure);
  if (enough) return hosts;
  const std::string lead = wanted.as_horovod ? horovod_timeout_words(wanted.slots, patience) + " " : "";
  throw Error(Errc::kTimeout,
              fmt::format("{}{}: '{}' lists {} of the {} that the job needs after {:.3g} s (--elastic-timeout)", lead,
                          wanted.place, wanted.script, count_slots(hosts), counted(wanted.slots, "slot"), patience));
}

}  // namespace runjob
