#pragma once

#include <cstddef>

/// The choice of an algorithm by cost, from numbers that were measured once and are the same on all ranks. Pure.
namespace runjob::runtime {

/// The cost of messages between two hosts, as measured when the ranks connect: seconds for each message, and for its
/// bytes.
struct LinkCosts {
  double short_seconds = 50e-6;    ///< a short message each way
  double long_seconds = 100e-6;    ///< a long message each way, without its bytes
  double bytes_per_second = 1e9;   ///< of a long message each way, at the same time
  double copied_per_second = 4e9;  ///< within a host: bytes that a rank copies
  int columns = 1;                 ///< the number of local ranks of each host that send long messages to other hosts

  bool operator==(const LinkCosts&) const = default;
};

enum class AllreduceWay {
  kDoubling,  ///< recursive doubling of short messages among the leaders
  kHalving,   ///< recursive halving and doubling among the leaders
  kExchange,  ///< two hosts with one rank each: both send all of their input, and add
  kRing,      ///< a ring of hosts, in columns, pipelined
};

/// Chooses kRing by sizes alone, when its messages are long enough, because it adds in another order than the other
/// two. Of those, which give the same bits, it chooses the one that costs less. So no result depends on a measurement.
/// `bytes`: the size of the tensor; `wide_bytes`: that of its sums where they are not rounded between hosts;
/// `most_short`: the largest tensor for kDoubling.
AllreduceWay choose_allreduce(const LinkCosts& costs, int hosts, std::size_t bytes, std::size_t wide_bytes,
                              std::size_t most_short);

/// The largest input of an operation whose data should travel in the messages of a round. There each host receives the
/// data of all ranks of other hosts, where a collective has one message more and fewer bytes. `received`: the most
/// ranks whose data a host receives. No result depends on it, because rounds add in the order of the collectives.
std::size_t most_data_in_round(const LinkCosts& costs, int received);

/// True for kExchange, which depends on sizes and hosts alone. `are_all_alone`: each host has one rank.
bool exchanges_directly(bool are_all_alone, int hosts, std::size_t bytes, std::size_t most_short);

/// The seconds that each algorithm would take.
double doubling_seconds(const LinkCosts& costs, int hosts, std::size_t bytes);
double halving_seconds(const LinkCosts& costs, int hosts, std::size_t bytes);

}  // namespace runjob::runtime
