#include "runtime/collectives/shm/buffer_exchange.hpp"

#include <cstring>
#include <optional>
#include <sys/random.h>
#include <unistd.h>
#include <utility>

#include "base/error.hpp"
#include "base/log.hpp"
#include "runtime/collectives/copy_bytes.hpp"
#include "runtime/collectives/shm/memory/pieces.hpp"
#include "runtime/collectives/shm/memory/process_memory.hpp"

namespace runjob::runtime {
namespace {

/// The most that is copied between two checks that the group has not ended.
constexpr std::size_t kUncheckedBytes = 1u << 20;

/// A rank's announcement in the probe: a value of its memory and the address of the value.
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

}  // namespace

BufferExchange::BufferExchange(Group& group, SmallExchange& small, BufferOptions options)
    : group_(group), small_(small), options_(std::move(options)), addresses_(static_cast<std::size_t>(group.size())) {}

BufferExchange::Addresses BufferExchange::addresses_of(const Buffers& buffers) const {
  Addresses addresses{.input = address_of(buffers.input), .output = address_of(buffers.output)};
  if (!options_.heap) return addresses;
  const auto offset_of = [&](const void* memory, std::size_t bytes) {
    return bytes == 0 ? std::optional<std::size_t>(0) : options_.heap->offset_of(memory, bytes);
  };
  const auto input = offset_of(buffers.input, buffers.input_bytes);
  const auto output = offset_of(buffers.output, buffers.output_bytes);
  addresses.is_symmetric = input && output;
  addresses.has_mapped = options_.heap->is_mapped();
  addresses.input_offset = input.value_or(0);
  addresses.output_offset = output.value_or(0);
  return addresses;
}

bool BufferExchange::fits(std::size_t splits) const {
  return sizeof(Announcement) + splits * sizeof(std::size_t) <= small_.most_bytes();
}

void BufferExchange::announce(const Buffers& buffers, const Choice& choice) {
  const Announcement own{addresses_of(buffers), choice};
  own_are_symmetric_ = own.addresses.is_symmetric;
  all_are_symmetric_ = false;
  splits_of_rank_ = buffers.splits.size();
  std::byte* message = small_.begin(sizeof own + buffers.splits.size_bytes());
  std::memcpy(message, &own, sizeof own);
  if (splits_of_rank_ > 0) std::memcpy(message + sizeof own, buffers.splits.data(), buffers.splits.size_bytes());
  small_.give();
}

Choice BufferExchange::collect() {
  const std::size_t splits_bytes = splits_of_rank_ * sizeof(std::size_t);
  splits_.resize(splits_of_rank_ * addresses_.size());
  Choice choice;
  bool are_symmetric = true, have_mapped = true;
  for (int rank = 0; rank < group_.size(); ++rank) {
    const auto index = static_cast<std::size_t>(rank);
    const std::byte* message = small_.take(rank, sizeof(Announcement) + splits_bytes);
    const auto theirs = read_as<Announcement>(message);
    if (rank == 0) choice = theirs.choice;
    addresses_[index] = theirs.addresses;
    are_symmetric = are_symmetric && theirs.addresses.is_symmetric;
    have_mapped = have_mapped && theirs.addresses.has_mapped;
    if (splits_bytes > 0) std::memcpy(&splits_[index * splits_of_rank_], message + sizeof theirs, splits_bytes);
  }
  all_are_symmetric_ = are_symmetric && have_mapped;
  if (are_symmetric && options_.heap)
    options_.heap->map_others();  // too late for this message, in time for the next one
  return choice;
}

bool BufferExchange::probe_cma() {
  if (::getrandom(&token_, sizeof token_, 0) != sizeof token_) token_ = address_of(this);
  const Token own{address_of(&token_), token_, ::getpid()};
  small_.send(&own, sizeof own);
  processes_.assign(addresses_.size(), 0);
  std::vector<const std::byte*> tokens;
  for (int rank = 0; rank < group_.size(); ++rank) tokens.push_back(small_.take(rank, sizeof own));
  const bool can = options_.cma && can_read_all(tokens);
  small_.send(&can, sizeof can);
  bool all_can = true;
  for (int rank = 0; rank < group_.size(); ++rank) {
    all_can = read_as<bool>(small_.take(rank, sizeof can)) && all_can;
  }
  cma_ = all_can ? Cma::kPossible : Cma::kImpossible;
  return all_can;
}

/// Reads a value of every rank. Only a real read shows what namespaces, Yama and seccomp filters allow, and that a
/// process id means the same process here.
bool BufferExchange::can_read_all(const std::vector<const std::byte*>& tokens) {
  for (std::size_t rank = 0; rank < tokens.size(); ++rank) {
    const auto token = read_as<Token>(tokens[rank]);
    std::uint64_t value = 0;
    try {
      read_process(group_.name(static_cast<int>(rank)), token.process, token.address, &value, sizeof value);
    } catch (const Error& error) {
      log::info("large messages are copied through shared memory twice, because cross memory attach does not work: {}",
                error.what());
      return false;
    }
    if (value != token.value) return false;
    processes_[rank] = token.process;
  }
  return true;
}

std::byte* BufferExchange::in_window(int rank, std::size_t offset, std::size_t bytes) const {
  const int in_heap = options_.heap_ranks.empty() ? rank : options_.heap_ranks[static_cast<std::size_t>(rank)];
  return options_.heap->at(in_heap, offset, bytes);
}

void BufferExchange::copy(int rank, std::uint64_t window_offset, std::uint64_t address, std::size_t bytes,
                          std::byte* to) const {
  const Pieces pieces(bytes, kUncheckedBytes);
  for (std::size_t i = 0; i < pieces.number(); ++i) {
    const Range piece = pieces[i];
    group_.check();
    if (all_are_symmetric_) {
      copy_bytes(to + piece.first, in_window(rank, window_offset + piece.first, piece.count), piece.count);
    } else {
      const pid_t process = processes_[static_cast<std::size_t>(rank)];
      read_process(group_.name(rank), process, address + piece.first, to + piece.first, piece.count);
    }
  }
}

const std::byte* BufferExchange::view_input(int rank, std::size_t offset, std::size_t bytes, std::byte* room) const {
  const Addresses& theirs = addresses_[static_cast<std::size_t>(rank)];
  if (all_are_symmetric_) return in_window(rank, theirs.input_offset + offset, bytes);
  copy(rank, 0, theirs.input + offset, bytes, room);
  return room;
}

void BufferExchange::fetch_input(int rank, std::size_t offset, std::size_t bytes, std::byte* to) const {
  const Addresses& theirs = addresses_[static_cast<std::size_t>(rank)];
  copy(rank, theirs.input_offset + offset, theirs.input + offset, bytes, to);
}

void BufferExchange::fetch_output(int rank, std::size_t offset, std::size_t bytes, std::byte* to) const {
  const Addresses& theirs = addresses_[static_cast<std::size_t>(rank)];
  copy(rank, theirs.output_offset + offset, theirs.output + offset, bytes, to);
}

const std::byte* BufferExchange::input(int rank, std::size_t bytes) const {
  return in_window(rank, addresses_[static_cast<std::size_t>(rank)].input_offset, bytes);
}

std::byte* BufferExchange::output(int rank, std::size_t bytes) const {
  return in_window(rank, addresses_[static_cast<std::size_t>(rank)].output_offset, bytes);
}

std::size_t BufferExchange::split(int rank, int index) const {
  return splits_[static_cast<std::size_t>(rank) * splits_of_rank_ + static_cast<std::size_t>(index)];
}

std::byte* BufferExchange::scratch(std::size_t bytes) {
  if (bytes > scratch_bytes_) {
    scratch_ = std::make_unique_for_overwrite<std::byte[]>(bytes);
    scratch_bytes_ = bytes;
  }
  return scratch_.get();
}

}  // namespace runjob::runtime
