#include "runtime/collectives/shm/peer_buffers.hpp"

#include <algorithm>
#include <bit>
#include <cstring>
#include <sys/random.h>
#include <unistd.h>
#include <utility>

#include "base/error.hpp"
#include "base/log.hpp"
#include "runtime/collectives/shm/parking.hpp"
#include "runtime/collectives/shm/process_memory.hpp"

namespace runjob::runtime {
namespace {

/// The most that is copied without a look whether the group has ended.
constexpr std::size_t kUnchecked = 1u << 20;

/// Below, a system call costs too much: docs/backends.md.
constexpr std::size_t kLeastReadBytes = 128u << 10;

/// Below, an output is in a core's own cache when it is read.
constexpr std::size_t kLeastStreamedBytes = 1u << 20;

/// What a rank says of itself in the probe.
struct Token {
  std::uint64_t address = 0, value = 0;
  pid_t process = 0;
};

template <class T>
T read_as(const std::byte* bytes) {
  T value;
  std::memcpy(&value, bytes, sizeof value);
  return value;
}

std::uint64_t address_of(const void* memory) {
  return reinterpret_cast<std::uintptr_t>(memory);
}

/// Unless all buffers are symmetric.
PeerBuffers::Route route_of(Way way) {
  if (way == Way::kRead) return PeerBuffers::Route::kRead;
  const bool is_whole = way == Way::kOneStep || way == Way::kStreamedOneStep;
  return is_whole ? PeerBuffers::Route::kOneStep : PeerBuffers::Route::kRing;
}

}  // namespace

PeerBuffers::PeerBuffers(Group& group, SmallExchange& small, Ring& ring, PeerOptions options)
    : group_(group),
      small_(small),
      ring_(ring),
      options_(std::move(options)),
      table_(std::max(Layout::kSlots * ring.slot_bytes(), group.layout().cells_bytes())),
      remembered_(group.rank() == 0 ? options_.ways_directory : "", group.size()),
      least_read_bytes_(options_.way == Way::kRead ? 1 : kLeastReadBytes),
      places_(static_cast<std::size_t>(group.size())) {
  for (const RouteTable::Found& found : remembered_.read()) table_.expect(found);
}

PeerBuffers::~PeerBuffers() {
  if (group_.rank() == 0) remembered_.write(table_.found());
}

/// Whether ordinary memory may be read for it, as far as this rank knows.
bool PeerBuffers::may_read(const Offer& offer) const {
  return options_.cma && offer.bytes >= least_read_bytes_ && cma_ != Cma::kNo;
}

Ways PeerBuffers::possible_ways(const Offer& offer) const {
  Ways ways{Way::kSlots, Way::kStreamedSlots};
  // Messages of up to twice its size less one take the same way.
  if (2 * std::bit_floor(offer.bytes) <= group_.layout().most_cell_bytes()) {
    ways.add(Way::kOneStep);
    ways.add(Way::kStreamedOneStep);
  }
  if (may_read(offer)) ways.add(Way::kRead);
  if (offer.copied_out.size() >= kLeastStreamedBytes) {
    ways.add(Way::kStreamedOutput);
    ways.add(Way::kStreamed);
  }
  return ways;
}

/// Of the message's way.
Copies PeerBuffers::copies() const {
  const bool streams_in = way_ == Way::kStreamedOneStep || way_ == Way::kStreamedSlots || way_ == Way::kStreamed;
  const bool streams_out = way_ == Way::kStreamedOutput || way_ == Way::kStreamed;
  return {streams_in ? &streaming_copy : &plain_copy, streams_out ? &streaming_copy : &plain_copy};
}

/// As whoever wanted it will: what was written past the caches comes back from further away. Of a large one the end: the rest has
/// left the caches anyway.
void PeerBuffers::read_once(std::span<const std::byte> output) {
  constexpr std::size_t kLine = 64, kMost = 8u << 20;
  unsigned sum = 0;
  for (std::size_t i = output.size() - std::min(output.size(), kMost); i < output.size(); i += kLine)
    sum += std::to_integer<unsigned>(output[i]);
  asm volatile("" : : "r"(sum));  // or it would be left out
}

/// Rank 0's, for all.
void PeerBuffers::choose_way(const Offer& offer, Place& place) {
  if (settled_) {
    place.way = *settled_;
    return;
  }
  place.is_probe = may_read(offer) && cma_ == Cma::kUnknown;
  if (place.is_probe) return;
  const Ways possible = possible_ways(offer);
  if (options_.way && possible.has(*options_.way)) {
    place.way = *options_.way;
    return;
  }
  const auto way = table_.next_try(offer.kind, offer.bytes, possible);
  place.way = way ? *way : table_.fastest(offer.kind, offer.bytes, possible);
  place.is_trial = way.has_value();
}

/// As the timeline names it.
const char* PeerBuffers::algorithm(Route route) const {
  if (route == Route::kOneStep) return way_ == Way::kOneStep ? kInOneStep : "streamed one step";
  if (route == Route::kRing) return way_ == Way::kSlots ? "pipeline" : "streamed pipeline";
  return by_pointer_ ? "symmetric memory" : "CMA";
}

PeerBuffers::Place PeerBuffers::place_of(const Offer& offer) {
  Place place{.input_address = address_of(offer.input), .output_address = address_of(offer.output)};
  if (group_.rank() == 0) choose_way(offer, place);
  if (!options_.heap) return place;
  const auto offset_of = [&](const void* memory, std::size_t bytes) {
    return bytes == 0 ? std::optional<std::size_t>(0) : options_.heap->offset_of(memory, bytes);
  };
  const auto input = offset_of(offer.input, offer.input_bytes), output = offset_of(offer.output, offer.output_bytes);
  place.is_symmetric = input && output;
  place.has_mapped = options_.heap->is_mapped();
  place.input = input.value_or(0);
  place.output = output.value_or(0);
  return place;
}

/// Such messages never need the others' places, and no other rank can have reason to use this one's: no need to hear from them.
bool PeerBuffers::is_settled_without_others(const Place& own) const {
  return !own.is_symmetric && settled_.value_or(Way::kRead) != Way::kRead;
}

PeerBuffers::Route PeerBuffers::agree(const Offer& offer) {
  is_trial_ = by_pointer_ = false;
  settled_ = table_.take_settled(offer.kind, offer.bytes);
  way_ = settled_.value_or(Way::kSlots);
  const std::size_t splits_bytes = offer.splits.size_bytes(), bytes = sizeof(Place) + splits_bytes;
  if (bytes > small_.most_bytes()) return Route::kRing;  // of hundreds of ranks
  const Place own = place_of(offer);
  std::byte* message = small_.begin(bytes);
  std::memcpy(message, &own, sizeof own);
  if (splits_bytes > 0) std::memcpy(message + sizeof own, offer.splits.data(), splits_bytes);
  small_.give();
  if (is_settled_without_others(own)) return route_of(way_);
  splits_.resize(offer.splits.size() * places_.size());
  bool is_symmetric = true, has_mapped = true;
  for (int rank = 0; rank < group_.size(); ++rank) {
    const std::byte* theirs = small_.take(rank, bytes);
    const Place place = read_as<Place>(theirs);
    places_[static_cast<std::size_t>(rank)] = place;
    is_symmetric = is_symmetric && place.is_symmetric;
    has_mapped = has_mapped && place.has_mapped;
    if (splits_bytes > 0)
      std::memcpy(&splits_[static_cast<std::size_t>(rank) * offer.splits.size()], theirs + sizeof place, splits_bytes);
  }
  by_pointer_ = is_symmetric && has_mapped;
  if (is_symmetric && options_.heap)
    options_.heap->map_others();  // if it is too late for this message, for the next one
  return decide(offer);
}

PeerBuffers::Route PeerBuffers::decide(const Offer& offer) {
  const Place& first = places_.front();
  way_ = first.way;
  if (by_pointer_) {
    const bool has_output = offer.kind == Kind::kAllreduce || offer.kind == Kind::kBroadcast;
    return has_output ? Route::kWrite : Route::kRead;
  }
  is_trial_ = first.is_trial;
  if (first.is_probe) {
    cma_ = probe() ? Cma::kYes : Cma::kNo;
    if (cma_ == Cma::kYes && options_.way == Way::kRead) way_ = Way::kRead;
  } else if (!is_trial_ && !settled_) {
    table_.settle(offer.kind, offer.bytes, way_);
  }
  return route_of(way_);
}

/// Whether every rank can read every other one's memory: all come to the same answer.
bool PeerBuffers::probe() {
  if (::getrandom(&token_, sizeof token_, 0) != sizeof token_) token_ = address_of(this);
  const Token own{address_of(&token_), token_, ::getpid()};
  small_.send(&own, sizeof own);
  processes_.assign(places_.size(), 0);
  std::vector<const std::byte*> tokens;
  for (int rank = 0; rank < group_.size(); ++rank) tokens.push_back(small_.take(rank, sizeof own));
  const bool can = options_.cma && can_read_all(tokens);
  small_.send(&can, sizeof can);
  bool all_can = true;
  for (int rank = 0; rank < group_.size(); ++rank) {
    all_can = read_as<bool>(small_.take(rank, sizeof can)) && all_can;
  }
  return all_can;
}

/// A real read: only that shows what namespaces, Yama and seccomp filters allow, and that a number means the same process here.
bool PeerBuffers::can_read_all(const std::vector<const std::byte*>& tokens) {
  for (std::size_t rank = 0; rank < tokens.size(); ++rank) {
    const auto token = read_as<Token>(tokens[rank]);
    std::uint64_t value = 0;
    try {
      read_process(static_cast<int>(rank), token.process, token.address, &value, sizeof value);
    } catch (const Error& error) {
      log::debug("no cross memory attach: {}", error.what());
      return false;
    }
    if (value != token.value) return false;
    processes_[rank] = token.process;
  }
  return true;
}

/// Returns when nobody needs this rank's buffers any more.
void PeerBuffers::finish(std::uint64_t step) {
  ring_.done(step);
  for (int rank = 0; rank < group_.size(); ++rank) {
    if (rank != group_.rank()) ring_.wait_done(rank, step);
  }
  group_.check();  // a rank that gave up says so before it says that it is done
}

/// This rank writes no other one's buffer any more; and when the caller hears of the failure, none of the others writes here any
/// more that could still say so.
void PeerBuffers::withdraw(std::uint64_t step) {
  group_.end();
  ring_.done(step);
  const auto deadline = std::chrono::steady_clock::now() + options_.farewell;
  for (int rank = 0; rank < group_.size(); ++rank) {
    RankWords& theirs = group_.words(rank);
    const auto is_over = [&] {
      return theirs.progress.done.load(std::memory_order_seq_cst) >= step || group_.has_left(rank);
    };
    sleep_until(is_over, theirs.doorbell, deadline);
  }
}

std::byte* PeerBuffers::in_window(int rank, std::size_t offset, std::size_t bytes) const {
  const int in_heap = options_.heap_ranks.empty() ? rank : options_.heap_ranks[static_cast<std::size_t>(rank)];
  return options_.heap->at(in_heap, offset, bytes);
}

void PeerBuffers::copy(int rank, std::uint64_t window_offset, std::uint64_t address, std::size_t bytes,
                       std::byte* to) const {
  const Pieces pieces(bytes, kUnchecked);
  for (std::size_t i = 0; i < pieces.number(); ++i) {
    const Range piece = pieces[i];
    group_.check();
    if (by_pointer_) {
      std::memcpy(to + piece.first, in_window(rank, window_offset + piece.first, piece.count), piece.count);
    } else {
      const pid_t process = processes_[static_cast<std::size_t>(rank)];
      read_process(rank, process, address + piece.first, to + piece.first, piece.count);
    }
  }
}

const std::byte* PeerBuffers::view_input(int rank, std::size_t offset, std::size_t bytes, std::byte* room) const {
  const Place& place = places_[static_cast<std::size_t>(rank)];
  if (by_pointer_) return in_window(rank, place.input + offset, bytes);
  copy(rank, 0, place.input_address + offset, bytes, room);
  return room;
}

void PeerBuffers::fetch_input(int rank, std::size_t offset, std::size_t bytes, std::byte* to) const {
  const Place& place = places_[static_cast<std::size_t>(rank)];
  copy(rank, place.input + offset, place.input_address + offset, bytes, to);
}

void PeerBuffers::fetch_output(int rank, std::size_t offset, std::size_t bytes, std::byte* to) const {
  const Place& place = places_[static_cast<std::size_t>(rank)];
  copy(rank, place.output + offset, place.output_address + offset, bytes, to);
}

const std::byte* PeerBuffers::input(int rank, std::size_t bytes) const {
  return in_window(rank, places_[static_cast<std::size_t>(rank)].input, bytes);
}

std::byte* PeerBuffers::output(int rank, std::size_t bytes) const {
  return in_window(rank, places_[static_cast<std::size_t>(rank)].output, bytes);
}

std::size_t PeerBuffers::split(int rank, int index) const {
  const std::size_t width = splits_.size() / places_.size();
  return splits_[static_cast<std::size_t>(rank) * width + static_cast<std::size_t>(index)];
}

std::byte* PeerBuffers::scratch(std::size_t bytes) {
  if (bytes > scratch_bytes_) {
    scratch_ = std::make_unique_for_overwrite<std::byte[]>(bytes);
    scratch_bytes_ = bytes;
  }
  return scratch_.get();
}

}  // namespace runjob::runtime
