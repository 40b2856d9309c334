#pragma once

#include <memory>
#include <vector>

#include "runtime/collectives/hierarchical/exchanges/host_channels.hpp"
#include "runtime/collectives/shm/memory/pieces.hpp"

namespace runjob::runtime {

/// One message to and one from each other host, all on their way at the same time, straight from the caller's input and
/// straight into the caller's output. Only where each host has one rank: see HostChannels::are_all_alone().
///
/// Owner    input and output are lent until wait() has returned or the object is destroyed.
/// Errors   as Transport's, thrown.
/// Threads  one.
class DirectExchange {
 public:
  DirectExchange(HostChannels& channels, const void* input, std::size_t input_bytes, void* output,
                 std::size_t output_bytes);

  /// Begins to send these bytes of the input, and to receive these bytes of the output. Both hosts of a message name
  /// the same number of bytes; nothing is sent when it is 0. At most once for each host.
  void send(int host, const Range& of_input);
  void receive(int host, const Range& of_output);
  /// Copies bytes of this rank while the messages go on: a peer that finds its own buffers full meanwhile would sleep,
  /// and wait for this rank once more when it is woken. Many bytes are written past the caches.
  void copy(void* to, const void* from, std::size_t bytes);
  /// Waits for all messages.
  void wait();

 private:
  Transport& transport_;
  void* const input_;
  void* const output_;
  const std::size_t input_bytes_, output_bytes_;
  const std::uint64_t tag_;
  std::vector<std::unique_ptr<TransportBuffer>> buffers_;
};

/// A reduction over two hosts with one rank each: both send the other one the part `sent` of their inputs, in pieces,
/// and add each piece of the other host to its place in the part `own` while the next one is on its way. The result of
/// `own` goes to the beginning of the output, which may be the input if the parts are all of it. The operands are added
/// in the order of the hosts, so both get the same bits. Units  bytes of the input.
void exchange_reduce(HostChannels& channels, const Call& call, const Range& sent, const Range& own);

}  // namespace runjob::runtime
