#pragma once

#include <cstddef>
#include <string>

#include "runtime/mpi_start/key_store.hpp"
#include "runtime/mpi_start/pmi_message.hpp"

namespace runjob::runtime {

/// PMI-1's, over the socket that the process has inherited: one line asks, one answers. srun --mpi=pmi2 speaks it too.
///
/// An MPI in the same process uses the same socket. That is fine as long as not both do at the same time, and it does only in its own
/// initialisation and end, when it also tells the launcher that the process is done with it, and closes it.
class PmiStore : public KeyStore {
 public:
  /// Errors  Error(kConnect) when the socket is not there; Error(kProtocol).
  explicit PmiStore(const ForeignLauncher& launcher);

  int rank() const override { return rank_; }
  int size() const override { return size_; }
  void put(const std::string& key, const std::string& value) override;
  std::string get(int rank, const std::string& key, TimePoint deadline) override;
  /// PMI-1 shows nothing before the fence has ended: always nullopt.
  std::optional<std::vector<int>> absent(const std::string& key, std::chrono::milliseconds patience) override;
  /// mpiexec's daemon, which would go too, and slurmstepd end their processes by themselves: never.
  void on_loss(std::function<void(const Status&)> /*tell*/) override {}
  void leave() noexcept override;

 private:
  void wait_for_all(TimePoint deadline) override;
  bool is_open() const;
  PmiMessage ask(const PmiMessage& question, const char* answer, TimePoint deadline);
  std::string get_piece(int rank, const std::string& key, std::size_t piece, TimePoint deadline);
  void send(const std::string& line);
  std::string receive_line(TimePoint deadline);
  void wait_for_bytes(TimePoint deadline) const;

  int descriptor_;    // the process's
  ino_t socket_ = 0;  // which one that is: an MPI that ends closes it, and another file may get its number
  int rank_, size_;
  std::string name_;     // the launcher's
  std::string kvsname_;  // the job's
  std::size_t most_value_bytes_ = 0;
};

}  // namespace runjob::runtime
