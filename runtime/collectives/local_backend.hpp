#pragma once

#include "runtime/collectives/backend.hpp"

namespace runjob::runtime {

/// The backend of a job with one rank: needs nobody, so nothing waits.
class LocalBackend : public Backend {
 public:
  std::string address() const override { return {}; }
  Status connect(const std::vector<std::string>& addresses) override;
  Status run(const Call& call) override;
  void abort(const Status& why) override;
};

}  // namespace runjob::runtime
