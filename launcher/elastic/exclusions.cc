#include "launcher/elastic/exclusions.hpp"

#include <algorithm>

#include <fmt/format.h>

namespace runjob {

bool Exclusions::rank_failed(int host, TimePoint now) {
  if (++failures_[host] <= restarts_) return false;
  failures_.erase(host);
  exclude(host, now);
  return true;
}

bool Exclusions::postpone(int host) {
  const auto found = failures_.find(host);
  if (found == failures_.end() || found->second < restarts_) return false;
  postponed_.push_back(host);
  return true;
}

void Exclusions::exclude(int host, TimePoint now) {
  Exclusion& exclusion = excluded_[host];
  exclusion.until = TimePoint::max();
  if (cooldown_) {
    constexpr int kMostDoublings = 20;  // an hour is reached long before
    const auto doubled = cooldown_->lower * (1 << std::min(exclusion.count, kMostDoublings));
    exclusion.until = now + std::min(doubled, cooldown_->upper);
  }
  ++exclusion.count;
}

bool Exclusions::is_excluded(int host, TimePoint now) const {
  if (std::find(postponed_.begin(), postponed_.end(), host) != postponed_.end()) return true;
  const auto found = excluded_.find(host);
  return found != excluded_.end() && found->second.until > now;
}

std::string Exclusions::duration_text(int host, TimePoint now) const {
  const TimePoint until = excluded_.at(host).until;
  if (until == TimePoint::max()) return "for ever";
  return fmt::format("for {} s", std::chrono::round<std::chrono::seconds>(until - now).count());
}

Exclusions::TimePoint Exclusions::next_return(TimePoint now) const {
  TimePoint next = TimePoint::max();
  for (const auto& [host, exclusion] : excluded_) {
    if (exclusion.until > now) next = std::min(next, exclusion.until);
  }
  return next;
}

}  // namespace runjob
