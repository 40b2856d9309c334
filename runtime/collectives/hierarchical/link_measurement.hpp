#pragma once

#include "runtime/collectives/hierarchical/exchanges/host_channels.hpp"

namespace runjob::runtime {

/// Measures what messages between the leaders cost, some milliseconds long, and gives every rank of all hosts the same
/// numbers: the slowest host's. All ranks call it at the same time, as a collective.
/// `may_use_columns`: whether each local rank of this host has a processor; columns are used when all hosts say so.
LinkCosts measure_links(HostChannels& channels, bool may_use_columns);

}  // namespace runjob::runtime
