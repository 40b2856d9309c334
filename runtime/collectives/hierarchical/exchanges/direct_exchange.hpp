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
  /// Waits for all of it.
  void wait();

 private:
  Transport& transport_;
  void* const input_;
  void* const output_;
  const std::size_t input_bytes_, output_bytes_;
  const std::uint64_t tag_;
  std::vector<std::unique_ptr<TransportBuffer>> buffers_;
};

/// The sum over two hosts with one rank each: both send all of their input, in pieces, and add each piece of the other
/// host while the next one is on its way. The operands are added in the order of the hosts, so both get the same bits.
void exchange_allreduce(HostChannels& channels, const Call& call);

/// The same when both ranks have sent all of their input with send_ahead().
void finish_allreduce_ahead(HostChannels& channels, const Call& call);

}  // namespace runjob::runtime
