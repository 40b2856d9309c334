#pragma once

#include <functional>
#include <string>

#include "launcher/channel/messages.hpp"
#include "launcher/supervision/verdict.hpp"
#include "rendezvous/protocol.hpp"

namespace runjob {

/// Supervises the ranks of one job: turns the events of their processes into a verdict, answers their requests to the
/// rendezvous, and decides when the job has to end. `process` is the number of a process, which in a job of fixed size
/// is its rank.
/// Owner    the job. The processes belong to the owner, which reports their events and ends them.
/// Threads  one.
/// Errors   none of its own; those of a malformed request are its reply.
class Supervisor {
 public:
  /// Called at most once, when the verdict requires that the job ends before all ranks have.
  using EndRanksBecause = std::function<void(const Verdict& verdict)>;

  virtual ~Supervisor() = default;

  virtual void started(int process, const Started& start) = 0;
  virtual void not_started(int process, const StartFailed& failure) = 0;
  virtual void exited(int process, const Exited& end) = 0;
  /// Returns true for the first join of the job.
  virtual bool joined(int process) = 0;
  /// The process has entered elastic.run().
  virtual void entered(int /*process*/) {}
  virtual void request(rendezvous::Request request, rendezvous::Reply reply) = 0;
  /// All ranks of `host` are lost with it.
  virtual void host_lost(int host, const std::string& how) = 0;
  /// A host that was to join an elastic job could not.
  virtual void host_not_joined(int /*host*/, const std::string& /*why*/) {}

  /// Makes the callback if the events so far require it. The owner calls it after each batch of events, so that all
  /// failures of a batch are known before the ranks are ended. The supervisor calls it itself when a time has passed.
  virtual void end_if_caused() = 0;

  /// The owner ends the ranks for a reason of its own: the callback is not made any more, and only the rendezvous is
  /// watched.
  virtual void ranks_are_ending() = 0;

  virtual const Verdict& verdict() const = 0;
  /// For causes that are not events of a rank. Call end_if_caused() afterwards.
  virtual Verdict& verdict() = 0;
  /// The index of the process's host; -1 for an unknown process.
  virtual int host_of(int process) const = 0;
  /// The process of a rank of the verdict.
  virtual int process_of(int rank) const { return rank; }
};

}  // namespace runjob
