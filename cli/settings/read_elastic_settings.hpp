#pragma once

#include <optional>

#include "cli/settings/setting_reader.hpp"
#include "launcher/job_spec/elastic_settings.hpp"

namespace runjob {

/// The value of --max-np, which may name more ranks than the job starts with; nullopt without one.
/// Errors  kUsage.
std::optional<int> read_max_ranks(const SettingReader& reader);

/// The settings of an elastic job that starts with `ranks` ranks; nullopt for a job of fixed size, which has no
/// --min-np.
/// Errors  kUsage naming the option: a number out of its range, and an option that needs --min-np.
std::optional<ElasticSettings> read_elastic_settings(const SettingReader& reader, int ranks);

}  // namespace runjob
