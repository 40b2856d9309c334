#include "runtime/collectives/hierarchical/exchanges/direct_exchange.hpp"

#include <algorithm>
#include <array>

#include "runtime/collectives/copy_bytes.hpp"
#include "runtime/collectives/hierarchical/exchanges/host_reduction.hpp"
#include "runtime/collectives/shm/tuning/streaming_copy.hpp"

namespace runjob::runtime {

DirectExchange::DirectExchange(HostChannels& channels, const void* input, std::size_t input_bytes, void* output,
                               std::size_t output_bytes)
    : transport_(*channels.transport),
      input_(const_cast<void*>(input)),  // only sent from
      output_(output),
      input_bytes_(input_bytes),
      output_bytes_(output_bytes),
      tag_(channels.next_tags()) {}

void DirectExchange::send(int host, const Range& of_input) {
  if (of_input.count == 0) return;
  buffers_.push_back(transport_.buffer(input_, input_bytes_));
  buffers_.back()->send(host, tag_, of_input.first, of_input.count).throw_if_failed();
}

void DirectExchange::receive(int host, const Range& of_output) {
  if (of_output.count == 0) return;
  buffers_.push_back(transport_.buffer(output_, output_bytes_));
  buffers_.back()->receive(host, tag_, of_output.first, of_output.count).throw_if_failed();
}

void DirectExchange::copy(void* to, const void* from, std::size_t bytes) {
  constexpr std::size_t kPieceBytes = 64u << 10, kLeastStreamed = 2u << 20;  // measured: measurements.md
  const CopyFunction copy_piece = copy_with(bytes >= kLeastStreamed ? Stores::kStreaming : Stores::kCached);
  const Pieces pieces(bytes, kPieceBytes);
  for (std::size_t i = 0; i < pieces.number(); ++i) {
    const Range piece = pieces[i];
    copy_piece(static_cast<std::byte*>(to) + piece.first, static_cast<const std::byte*>(from) + piece.first,
               piece.count);
    transport_.move();
  }
}

void DirectExchange::wait() {
  for (const auto& buffer : buffers_) {
    buffer->wait_received().throw_if_failed();
    buffer->wait_sent().throw_if_failed();
  }
}

namespace {

/// Leaves the sum of `count` elements in `output`, which may be `input`.
void add_in_order(const HostReduction& reduction, int own, void* output, const void* input, const void* arrived,
                  std::size_t count) {
  std::array<const void*, 2> inputs{};
  inputs[static_cast<std::size_t>(own)] = input;
  inputs[static_cast<std::size_t>(1 - own)] = arrived;
  reduction.add(output, nullptr, inputs, count, /*is_last=*/true);
}

}  // namespace

void exchange_reduce(HostChannels& channels, const Call& call, const Range& sent, const Range& own) {
  constexpr std::size_t kPieceBytes = 256u << 10;  // measured
  const std::size_t element = size_of(call.dtype);
  const Pieces to_send(sent.count, kPieceBytes), to_add(own.count, kPieceBytes);
  const std::size_t number = std::max(to_send.number(), to_add.number());
  std::byte* arrivals = channels.messages.reserve(Lanes::kNumber * kPieceBytes);
  Lanes leaving(*channels.transport, const_cast<void*>(call.input), call.count * element),
      arriving(*channels.transport, arrivals, Lanes::kNumber * kPieceBytes);
  const HostReduction reduction(call, channels.topology.size());
  const std::uint64_t tags = channels.next_tags();
  const int host = channels.topology.host(), other = 1 - host;
  const auto lane = [](std::size_t i) { return i % Lanes::kNumber * kPieceBytes; };
  const auto begin = [&](std::size_t i) {
    if (i < to_add.number()) arriving[i].receive(other, tags + i, lane(i), to_add[i].count).throw_if_failed();
    if (i < to_send.number())
      leaving[i].send(other, tags + i, sent.first + to_send[i].first, to_send[i].count).throw_if_failed();
  };
  for (std::size_t i = 0; i < std::min(number, Lanes::kNumber); ++i) begin(i);
  for (std::size_t i = 0; i < number; ++i) {
    arriving[i].wait_received().throw_if_failed();
    leaving[i].wait_sent().throw_if_failed();  // the output may be the input
    if (i < to_add.number()) {
      add_in_order(reduction, host, static_cast<std::byte*>(call.output) + to_add[i].first,
                   static_cast<const std::byte*>(call.input) + own.first + to_add[i].first, arrivals + lane(i),
                   to_add[i].count / element);
    }
    if (i + Lanes::kNumber < number) begin(i + Lanes::kNumber);
  }
}

}  // namespace runjob::runtime
