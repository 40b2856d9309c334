#include "launcher/elastic/generation_cause.hpp"

#include <fmt/format.h>

#include "launcher/elastic/exclusions.hpp"

namespace runjob {
namespace {

constexpr int kMostNamedHosts = 4;  // a line that can still be read

}  // namespace

void GenerationCause::report(int process, bool own, const std::string& reason) {
  reports_.try_emplace(process, Report{own, reason});
}

std::string GenerationCause::own_error(int process) const {
  const auto found = reports_.find(process);
  return found != reports_.end() && found->second.own ? found->second.reason : "";
}

GenerationCause::Kind GenerationCause::kind_for(int process, Kind of_victim, Kind otherwise) const {
  const auto found = reports_.find(process);
  return found != reports_.end() && !found->second.own ? of_victim : otherwise;
}

void GenerationCause::note(Kind kind, const std::string& reason, const std::string& consequence) {
  const bool is_loss = kind == Kind::kHostLost;
  lost_hosts_ += is_loss ? 1 : 0;
  const Kind known = kind_ == Kind::kHostLost ? Kind::kEnd : kind_;
  const Kind next = is_loss ? Kind::kEnd : kind;
  if (next > known) {
    text_ = reason + consequence;
    reason_ = reason;
  } else if (is_loss && lost_hosts_ <= kMostNamedHosts) {
    text_ += "; " + reason + consequence;
    reason_ += "; " + reason;
  }
  if (next > known || is_loss) kind_ = kind;
}

std::string GenerationCause::exclude(const std::string& host, const std::string& duration) {
  excluded_.push_back(duration == kForEver ? host : fmt::format("{} {}", host, duration));
  return fmt::format("; {} is excluded {}", host, duration);
}

std::string GenerationCause::with_other_hosts(const std::string& text) const {
  const int unnamed = lost_hosts_ - kMostNamedHosts;
  if (unnamed <= 0) return text;
  return text + (unnamed == 1 ? "; 1 other host was lost" : fmt::format("; {} other hosts were lost", unnamed));
}

void GenerationCause::clear() {
  kind_ = Kind::kNone;
  lost_hosts_ = 0;
  text_.clear();
  reason_.clear();
  excluded_.clear();
  reports_.clear();
}

bool GenerationCause::is_own_failure() const {
  switch (kind_) {
    case Kind::kNone:
    case Kind::kHostsChanged:
    case Kind::kLostWhileForming:
    case Kind::kHostLost:
      return false;
    case Kind::kLostConnection:
    case Kind::kEndOfVictim:
    case Kind::kAbsence:
    case Kind::kError:
    case Kind::kEnd:
      return true;
  }
  return false;
}

}  // namespace runjob
