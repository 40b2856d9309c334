#pragma once

#include <cstddef>

/// Which way a message takes: a function of what was measured once, on all ranks of the same numbers. Pure.
namespace runjob::runtime {

/// What a message between two hosts costs: `seconds` of each, and the bytes; measured when the ranks connect.
struct LinkCosts {
  double short_seconds = 50e-6;    ///< a short message each way
  double long_seconds = 100e-6;    ///< a long message each way, but for its bytes
  double bytes_per_second = 1e9;   ///< of a long message each way, at the same time
  double copied_per_second = 4e9;  ///< within a host: bytes that a rank copies
  int columns = 1;                 ///< how many local ranks of each host talk to the others when messages are long

  bool operator==(const LinkCosts&) const = default;
};

enum class AllreduceWay {
  kDoubling,  ///< recursive doubling of short messages among the leaders
  kHalving,   ///< recursive halving and doubling among the leaders
  kExchange,  ///< two hosts with one rank each: both send all of their input, and add
  kRing,      ///< a ring of hosts, in columns, pipelined
};

/// kRing when its messages are long enough, which depends on sizes alone, since it adds in another order than the other two; of
/// those, which give the same bits, the one that costs less. So no result depends on what was measured.
/// `bytes`: of the tensor; `wide_bytes`: of its sums where they are not rounded between hosts; `most_short`: the largest
/// tensor for kDoubling.
AllreduceWay choose_allreduce(const LinkCosts& costs, int hosts, std::size_t bytes, std::size_t wide_bytes,
                              std::size_t most_short);

/// True for kExchange, which depends on sizes and hosts alone. `are_all_alone`: each host has one rank.
bool exchanges_directly(bool are_all_alone, int hosts, std::size_t bytes, std::size_t most_short);

/// Seconds that each would take.
double doubling_seconds(const LinkCosts& costs, int hosts, std::size_t bytes);
double halving_seconds(const LinkCosts& costs, int hosts, std::size_t bytes);

}  // namespace runjob::runtime
