#include "launcher/elastic/generation_cause.hpp"

#include <utility>

namespace runjob {

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

void GenerationCause::note(Kind kind, std::string text) {
  const Kind known = kind_ == Kind::kHostLost ? Kind::kEnd : kind_;
  const Kind next = kind == Kind::kHostLost ? Kind::kEnd : kind;
  if (next <= known) return;
  kind_ = kind;
  text_ = std::move(text);
}

void GenerationCause::clear() {
  kind_ = Kind::kNone;
  text_.clear();
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
