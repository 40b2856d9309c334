#pragma once

#include <string>

/// The congestion control of TCP for links.
///
/// BBR sends by a timer, at a rate that it estimates. Over a short round trip the timer takes longer than the network:
/// in about half of all jobs an allreduce of 128 KiB then takes 2.5 times as long (measurements.md). So a link with
/// a short round trip does not use it, also where it is the default of the host. Any other default stays.
///
/// A socket keeps to a timer once it has begun to. So BBR is switched off before the connection begins, and switched
/// on again when the round trip is known to be long.
/// Threads  any. Errors  none: a system that permits no choice keeps its default.
namespace runjob::runtime {

/// For a socket that is about to connect or to listen, whose connections inherit it: not BBR.
void begin_without_bbr(int socket);
/// For a connected socket of begin_without_bbr(), or of a listener with it: `of_host` if the round trip is not short.
void settle_congestion_control(int socket, const std::string& of_host);
/// The default of this host; empty if it is not known.
std::string congestion_control_of_host();

/// The congestion control of a socket; empty if it is not known.
std::string congestion_control(int socket);
/// True for a connected socket with a round trip of at most 200 microseconds, as within a rack or a data center.
bool has_short_round_trip(int socket);

}  // namespace runjob::runtime
