#pragma once

#include "runtime/collectives/hierarchical/exchanges/host_channels.hpp"

namespace runjob::runtime {

/// Measures the costs of messages between the leaders, for some milliseconds, and gives every rank of all hosts the
/// same numbers: those of the slowest host. All ranks call it at the same time, as a collective.
/// `may_use_columns`: true when each local rank of this host has a processor. Columns are used when that is true on all
/// hosts.
LinkCosts measure_links(HostChannels& channels, bool may_use_columns);

}  // namespace runjob::runtime
