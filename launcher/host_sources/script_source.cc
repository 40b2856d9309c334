#include "launcher/host_sources/script_source.hpp"

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/log.hpp"
#include "hostfile/parse_hosts.hpp"

namespace runjob {

ScriptSource::ScriptSource(boost::asio::any_io_executor executor, const std::string& command,
                           const Environment& environment, int slots_per_host, HostChanges& changes)
    : name_(fmt::format("the discovery script '{}'", command)),
      slots_per_host_(slots_per_host),
      changes_(changes),
      script_(std::move(executor), command, environment,
              {[this](const std::string& list) { on_list(list); },
               [this](const std::string& why) { on_trouble(fmt::format("{} {}", name_, why)); }}) {}

void ScriptSource::on_list(const std::string& list) {
  try {
    const std::vector<Host> hosts = parse_discovered_hosts(list, name_, slots_per_host_);
    if (hosts.empty()) return on_trouble(name_ + " lists no host");
    trouble_.clear();
    changes_.set_list(hosts);
  } catch (const Error& error) {
    on_trouble(error.what());
  }
}

void ScriptSource::on_trouble(const std::string& what) {
  if (what == trouble_) return;
  trouble_ = what;
  log::warn("{}; the hosts stay as they are", what);
}

}  // namespace runjob
