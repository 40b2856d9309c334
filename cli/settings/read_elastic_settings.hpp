#pragma once

#include <map>
#include <optional>
#include <string>

#include "cli/settings/setting_reader.hpp"
#include "hostfile/allocation.hpp"
#include "launcher/job_spec/elastic_settings.hpp"
#include "launcher/job_spec/first_hosts.hpp"

namespace runjob {

/// The size of an elastic job as the user gives it, before its hosts are known.
struct ElasticSize {
  std::optional<int> ranks;      ///< at the start; -np
  std::optional<int> max_ranks;  ///< --max-np
  int min_ranks = 1;             ///< --min-np
  int spares = 0;                ///< --spares
  bool as_horovod = false;       ///< horovodrun's rules hold

  /// The slots that the job needs to start.
  int needed_slots() const { return ranks.value_or(min_ranks) + spares; }
  /// The ranks with which it starts on hosts with so many slots: -np. Without -np these are all slots that the
  /// spares leave, up to --max-np, and one at least. horovodrun starts the larger number of both.
  int first_ranks(int slots) const;
};

/// nullopt for a job of fixed size, which has neither --min-np nor --host-discovery-script. `as_horovod`: horovodrun's
/// rules hold.
/// Errors  kUsage naming the option: a number out of its range, and an option that needs --min-np.
std::optional<ElasticSize> read_elastic_size(const SettingReader& reader, std::optional<int> ranks, bool as_horovod);

/// The first run of --host-discovery-script, as a request that the caller carries out; nullopt without that option.
/// Errors  kUsage naming the option.
std::optional<FirstHosts> read_first_hosts(const SettingReader& reader, const ElasticSize& size);

/// The settings of an elastic job. `hosts`: all of its hosts; `allocation`: those with ranks at the start.
/// Errors  kUsage naming the option.
ElasticSettings read_elastic_settings(const SettingReader& reader, const ElasticSize& size,
                                      const std::vector<Host>& hosts, const Allocation& allocation);

/// --commit-dir and --commit-interval as variables of the ranks, without the prefix RUNJOB_. Empty without a folder.
/// Errors  kUsage naming the option, also when the folder exists and does not belong to this user.
std::map<std::string, std::string> read_commit_variables(const SettingReader& reader);

}  // namespace runjob
