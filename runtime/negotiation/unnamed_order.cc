#include "runtime/negotiation/unnamed_order.hpp"

#include <utility>

namespace runjob::runtime {

UnnamedOrder::Place& UnnamedOrder::next_place(int process_set, int rank, const std::string& key) {
  OfSet& set = sets_[process_set];
  set.announced.resize(size_);
  const std::size_t index = set.announced[static_cast<std::size_t>(rank)];
  if (index == set.open.size()) {
    set.open.push_back({process_set, unnamed_operation(process_set, set.decided + index + 1), key});
    set.open.back().ready.resize(size_);
  }
  return set.open[index];
}

void UnnamedOrder::announce(Place& place, int rank, std::optional<Id> id) {
  const auto by = static_cast<std::size_t>(rank);
  place.ready[by] = true;
  ++place.ready_count;
  ++sets_[place.process_set].announced[by];
  if (id) ++outstanding_[by];
  place.id = id;
}

void UnnamedOrder::drop_id(Place& place) {
  if (!place.id) return;
  place.id.reset();
  for (std::size_t rank = 0; rank < size_; ++rank) outstanding_[rank] -= place.ready[rank] ? 1 : 0;
}

std::vector<UnnamedOrder::Place*> UnnamedOrder::with_id(std::optional<Id> id) {
  std::vector<Place*> places;
  for (auto& [number, set] : sets_) {
    for (Place& place : set.open) {
      if (place.id && (!id || place.id == id)) places.push_back(&place);
    }
  }
  return places;
}

std::string UnnamedOrder::decided(int process_set) {
  OfSet& set = sets_.at(process_set);
  const bool is_own = set.open.front().ready[rank_];
  drop_id(set.open.front());
  for (std::size_t rank = 0; rank < size_; ++rank) set.announced[rank] -= set.open.front().ready[rank] ? 1 : 0;
  set.open.pop_front();
  ++set.decided;
  set.last = is_own ? unnamed_operation(process_set, ++set.decided_here)
                    : unnamed_operation(process_set, set.decided) + " of the ranks that have not joined";
  return set.last;
}

const UnnamedOrder::Place* UnnamedOrder::first(const std::string& name) const {
  for (const auto& [number, set] : sets_) {
    if (!set.open.empty() && set.open.front().name == name) return &set.open.front();
  }
  return nullptr;
}

void UnnamedOrder::agree(int process_set) {
  OfSet& set = sets_[process_set];
  ++set.decided;
  ++set.decided_here;
  set.last.clear();
}

bool UnnamedOrder::has_open(int process_set) const {
  const auto found = sets_.find(process_set);
  return found != sets_.end() && !found->second.open.empty();
}

std::string UnnamedOrder::last(int process_set) const {
  const OfSet& set = sets_.at(process_set);
  return set.last.empty() ? unnamed_operation(process_set, set.decided_here) : set.last;
}

std::string UnnamedOrder::next(int process_set, std::size_t skip) const {
  const auto found = sets_.find(process_set);
  std::uint64_t before = skip;
  if (found != sets_.end()) {
    before += found->second.decided_here;
    if (!found->second.announced.empty()) before += found->second.announced[rank_];
  }
  return unnamed_operation(process_set, before + 1);
}

const UnnamedOrder::Place* UnnamedOrder::find(const std::string& name) const {
  for (const auto& [number, set] : sets_) {
    for (std::size_t i = 0; i < set.open.size(); ++i) {
      if (unnamed_operation(number, set.decided_here + i + 1) == name) return &set.open[i];
    }
  }
  return nullptr;
}

void UnnamedOrder::end_set(int process_set) {
  const auto found = sets_.find(process_set);
  if (found == sets_.end()) return;
  for (Place& place : found->second.open) drop_id(place);
  sets_.erase(found);
}

}  // namespace runjob::runtime
