#include "runtime/mpi_start/store_meeting.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/error.hpp"
#include "runtime/mpi_start/host_identity.hpp"

namespace runjob::runtime {
namespace {

using rendezvous::JoinReply;

int index_of(const std::vector<std::string>& texts, const std::string& text) {
  return static_cast<int>(std::find(texts.begin(), texts.end(), text) - texts.begin());
}

std::string ranks_text(const std::vector<int>& ranks) {
  constexpr std::size_t kMostNamed = 10;
  const auto shown = static_cast<std::ptrdiff_t>(std::min(ranks.size(), kMostNamed));
  const std::string text =
      fmt::format("rank{} {}", ranks.size() == 1 ? "" : "s", fmt::join(ranks.begin(), ranks.begin() + shown, ", "));
  return ranks.size() > kMostNamed ? fmt::format("{} and {} more", text, ranks.size() - kMostNamed) : text;
}

}  // namespace

StoreMeeting::StoreMeeting(const ForeignLauncher& launcher, KeyStore& store, int round)
    : launcher_(launcher), store_(store), round_(round) {}

JoinReply StoreMeeting::join(std::optional<Milliseconds> timeout) {
  const Milliseconds limit = timeout.value_or(kStoreTimeout);
  return place_in_store(store_.rank(),
                        gather(fmt::format("runtime.join.{}", round_), own_host_text(host_name()), limit), limit);
}

std::vector<std::string> StoreMeeting::gather(const std::string& name, const std::string& blob, Milliseconds timeout) {
  const KeyStore::TimePoint deadline = std::chrono::steady_clock::now() + timeout;
  const std::string key = "runjob." + name;
  if (store_.fence_is_open()) {
    throw Error(Errc::kAborted,
                "init(): not all ranks came to an earlier init(), and none can be done after it; start the job anew");
  }
  store_.put(key, blob);
  try {
    store_.fence(deadline);
  } catch (const Error& error) {
    if (error.code() != Errc::kTimeout) throw;
    throw Error(Errc::kTimeout,
                fmt::format("init(): {} in {} s; {} has started {} ranks, and each has to call init()", missing(key),
                            std::chrono::duration<double>(timeout).count(), launcher_.name, store_.size()));
  }
  std::vector<std::string> blobs;
  for (int rank = 0; rank < store_.size(); ++rank) blobs.push_back(store_.get(rank, key, deadline));
  return blobs;
}

/// A text such as "rank 3 has not come", as far as the missing ranks can be determined.
std::string StoreMeeting::missing(const std::string& key) const {
  constexpr std::chrono::seconds kPatience{2};
  const std::optional<std::vector<int>> absent = store_.absent(key, kPatience);
  if (!absent || absent->empty()) return fmt::format("not all {} ranks have come", store_.size());
  return fmt::format("{} {} not come", ranks_text(*absent), absent->size() == 1 ? "has" : "have");
}

std::string own_host_text(const std::string& name) {
  return fmt::format("{}\n{}", host_identity(), name);
}

JoinReply place_in_store(int rank, const std::vector<std::string>& texts, std::chrono::milliseconds timeout) {
  std::vector<std::string> identities, names;
  for (const std::string& text : texts) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    identities.push_back(text.substr(0, end));
    names.push_back(text.substr(std::min(end + 1, text.size())));
  }
  JoinReply place = place_among(rank, identities, names);
  place.start_timeout_seconds = std::chrono::duration<double>(timeout).count();
  return place;
}

JoinReply place_among(int rank, const std::vector<std::string>& identities, const std::vector<std::string>& names) {
  JoinReply place;
  place.rank = rank;
  place.size = static_cast<int>(identities.size());
  std::vector<std::string> hosts;
  std::vector<int> counts;  // number of ranks of each host
  std::vector<int> local_ranks;
  for (std::size_t each = 0; each < identities.size(); ++each) {
    const int host = index_of(hosts, identities[each]);
    if (static_cast<std::size_t>(host) == hosts.size()) {
      hosts.push_back(identities[each]);
      counts.push_back(0);
      place.hostnames.push_back(names[each]);
    }
    place.hosts.push_back(host);
    local_ranks.push_back(counts[static_cast<std::size_t>(host)]++);
  }
  const int own_host = place.hosts.at(static_cast<std::size_t>(rank));
  place.hostname = place.hostnames[static_cast<std::size_t>(own_host)];
  place.local_rank = local_ranks[static_cast<std::size_t>(rank)];
  place.local_size = counts[static_cast<std::size_t>(own_host)];
  const auto has_local_rank = [&](int count) { return count > place.local_rank; };
  place.cross_rank = static_cast<int>(std::count_if(counts.begin(), counts.begin() + own_host, has_local_rank));
  place.cross_size = static_cast<int>(std::count_if(counts.begin(), counts.end(), has_local_rank));
  return place;
}

}  // namespace runjob::runtime
