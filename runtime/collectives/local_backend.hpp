#pragma once

#include "runtime/collectives/backend.hpp"

namespace runjob::runtime {

/// The backend of a job with one rank: needs nobody, so each call is done before start() returns.
class LocalBackend : public Backend {
 public:
  std::string address() const override { return {}; }
  Status connect(const std::vector<std::string>& addresses) override;
  void start(Call call, Done done) override;
  void abort(const Status& why) override;
};

}  // namespace runjob::runtime
