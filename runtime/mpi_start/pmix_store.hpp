#pragma once

#include <string>

#include "base/pmix/pmix_values.hpp"
#include "runtime/mpi_start/key_store.hpp"

namespace runjob::runtime {

/// PMIx's key store, through the MPI's own libpmix.
/// Life    This process is PMIx's client until leave(), and libpmix has a thread until then. An MPI in the same process
///         is another client; PMIx counts them.
/// Owner   the process; never destroyed.
class PmixStore : public KeyStore {
 public:
  /// Errors  Error(kUnavailable) without a libpmix; Error(kConnect) when the launcher's server rejects this process.
  explicit PmixStore(const ForeignLauncher& launcher);
  PmixStore(const PmixStore&) = delete;
  PmixStore& operator=(const PmixStore&) = delete;

  int rank() const override { return static_cast<int>(self_.rank); }
  int size() const override { return size_; }
  void put(const std::string& key, const std::string& value) override;
  std::string get(int rank, const std::string& key, TimePoint deadline) override;
  std::optional<std::vector<int>> absent(const std::string& key, std::chrono::milliseconds patience) override;
  void on_loss(std::function<void(const Status&)> notify) override;
  void leave() noexcept override;

 private:
  void wait_for_all(TimePoint deadline) override;

  void watch_launcher();
  PmixQuestion ask(std::uint32_t rank, const std::string& key) const;
  void check(pmix::Status status, const std::string& what) const;

  PmixLibrary library_;
  pmix::Proc self_{};
  int size_ = 0;
};

}  // namespace runjob::runtime
