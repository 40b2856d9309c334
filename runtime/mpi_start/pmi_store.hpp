#pragma once

#include <cstddef>
#include <string>

#include "runtime/mpi_start/key_store.hpp"
#include "runtime/mpi_start/pmi_message.hpp"

namespace runjob::runtime {

/// PMI-1's key store, over the socket that the process has inherited: one line is a request, one line its answer. srun
/// --mpi=pmi2 supports it too.
///
/// Sharing  An MPI in the same process uses the same socket. That is safe as long as they do not use it at the same
///          time. An MPI uses it only in its own initialisation and finalisation. The latter also reports the end of
///          the process to the launcher and closes the socket.
/// Errors   Error(kTimeout) that names the launcher, the request and this rank, from every function that asks it. The
///          late answer may still come, and would be taken for that of the next request: so all later requests fail.
class PmiStore : public KeyStore {
 public:
  /// Errors  Error(kConnect) when the socket does not exist; Error(kProtocol).
  explicit PmiStore(const ForeignLauncher& launcher);

  int rank() const override { return rank_; }
  int size() const override { return size_; }
  void put(const std::string& key, const std::string& value) override;
  std::string get(int rank, const std::string& key, TimePoint deadline) override;
  /// PMI-1 shows no values before the fence has ended: always nullopt.
  std::optional<std::vector<int>> absent(const std::string& key, std::chrono::milliseconds patience) override;
  /// Never called: mpiexec's daemon, which would be lost too, and slurmstepd end their processes themselves.
  void on_loss(std::function<void(const Status&)> /*notify*/) override {}
  void leave() noexcept override;

 private:
  void wait_for_all(TimePoint deadline) override;
  bool is_open() const;
  PmiMessage ask(const PmiMessage& question, const char* answer, TimePoint deadline);
  std::string await_line(const PmiMessage& question, TimePoint deadline);
  std::string get_piece(int rank, const std::string& key, std::size_t piece, TimePoint deadline);
  void send(const std::string& line);
  std::string receive_line(TimePoint deadline);
  void wait_for_bytes(TimePoint deadline) const;

  int descriptor_;    // owned by the process
  ino_t socket_ = 0;  // the socket's inode: an MPI that ends closes the socket, and another file may get its descriptor
  int rank_, size_;
  std::string name_;     // name of the launcher
  std::string kvsname_;  // name of the job's key-value space
  std::size_t most_value_bytes_ = 0;
  bool owes_answer_ = false;  // the answer to a request has not come in time
};

}  // namespace runjob::runtime
