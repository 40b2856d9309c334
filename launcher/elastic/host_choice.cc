#include "launcher/elastic/host_choice.hpp"

namespace runjob {

std::optional<int> HostChoice::next(const ProcessRoll& roll, const Exclusions& exclusions, Exclusions::TimePoint now,
                                    const std::function<bool(int host)>& can_join) {
  const auto has_room = [&](int host) {
    const ProcessRoll::HostState& state = roll.hosts.at(host);
    return state.usable && !exclusions.is_excluded(host, now) && roll.count_on(host) < state.slots && can_join(host);
  };
  while (!preferred_.empty()) {
    const int host = preferred_.front();
    preferred_.erase(preferred_.begin());
    if (has_room(host)) return host;
  }
  for (const auto& [host, state] : roll.hosts) {
    if (has_room(host)) return host;
  }
  return std::nullopt;
}

}  // namespace runjob
