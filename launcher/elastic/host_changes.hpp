#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "hostfile/allocation.hpp"
#include "launcher/elastic/membership.hpp"

namespace runjob {

/// The list of hosts of a running elastic job, and what changes it: lists of a discovery script or a hostfile, and the
/// user's requests. A host keeps its index for the whole job, also when it leaves and comes back. What the user has
/// added or removed stays so when a new list arrives.
/// Owner    the supervisor. `membership` outlives this object.
/// Threads  one.
class HostChanges {
 public:
  struct Hooks {
    std::function<Membership::TimePoint()> now;
    /// Why no process can start on a host at present: see Membership::Actions. The job may not have the host yet.
    std::function<std::string(const Host& host)> obstacle;
    /// A host with the next free index has come.
    std::function<void(const Host& host)> add;
    /// The membership has changed, and with it perhaps its next deadline.
    std::function<void()> changed;
  };

  /// `hosts`: those that the job has from its start.
  HostChanges(std::vector<Host> hosts, const ElasticSettings& settings, Membership& membership, Hooks hooks);

  /// The hosts by index, also those that have left.
  const std::vector<Host>& hosts() const { return hosts_; }

  /// `list` replaces the list of before.
  void set_list(const std::vector<Host>& list);

  /// The three requests of `runjob resize`. Each returns a line for the user. Hosts are written as for -H. What cannot
  /// take effect is refused: more ranks than slots when no list will bring more of them, a host that cannot join, and
  /// the removal of the last host that has ranks.
  /// Errors  Error(kUsage) or Error(kHostfile) with one line; then nothing has changed.
  std::string resize(int ranks);
  std::string add(std::string_view list);
  std::string remove(std::string_view list);

 private:
  void apply(const std::vector<Host>& forgiven);
  std::vector<Host> wanted() const;
  int index_of(const Host& host) const;
  int slots_of(const std::vector<Host>& hosts) const;
  std::string slots_text(const std::vector<Host>& hosts) const;
  std::string size_text() const;

  std::vector<Host> hosts_;  // by index
  std::vector<Host> list_;   // as its source has it
  std::vector<Host> added_, removed_;
  const int min_ranks_;
  int max_ranks_;
  const std::string list_source_;  // what may bring other lists: "the hostfile"; "" for nothing
  Membership& membership_;
  const Hooks hooks_;
};

}  // namespace runjob
