#include "launcher/elastic/exclusions.hpp"

#include <algorithm>

#include <fmt/format.h>

namespace runjob {

bool Exclusions::rank_failed(int host, int first_successor, TimePoint now) {
  Row& row = rows_[host];
  row.first_successor = first_successor;
  if (++row.failures <= restarts_) return false;
  rows_.erase(host);
  exclude(host, now);
  return true;
}

std::optional<Exclusions::Failure> Exclusions::postpone(Failure failure) {
  if (restarts_ == 0) return std::nullopt;
  postponed_.push_back(failure);
  postponed_.back().is_decisive = would_exclude(failure.host);
  return postponed_.back();
}

void Exclusions::forgive(int host, int process) {
  const auto found = rows_.find(host);
  if (found != rows_.end() && process >= found->second.first_successor) rows_.erase(found);
}

bool Exclusions::would_exclude(int host) const {
  const auto postponed = std::count_if(postponed_.begin(), postponed_.end(),
                                       [host](const Failure& failure) { return failure.host == host; });
  const auto found = rows_.find(host);
  return postponed > 0 && (found == rows_.end() ? 0 : found->second.failures) + postponed > restarts_;
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
  if (would_exclude(host)) return true;
  const auto found = excluded_.find(host);
  return found != excluded_.end() && found->second.until > now;
}

bool Exclusions::is_excluded_for_ever(int host) const {
  const auto found = excluded_.find(host);
  return found != excluded_.end() && found->second.until == TimePoint::max();
}

std::string Exclusions::duration_text(int host, TimePoint now) const {
  const TimePoint until = excluded_.at(host).until;
  if (until == TimePoint::max()) return kForEver;
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
