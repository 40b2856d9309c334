#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <boost/asio/any_io_executor.hpp>

#include "launcher/network/network_probe.hpp"

namespace runjob {

/// `facts` without loopback, for hosts that may get neighbours later; unchanged if nothing else would be left.
NetworkFacts facts_without_loopback(NetworkFacts facts);

/// The address of a job's only host, where others may come: loopback only if it has no other.
HostAddress address_of_only_host(const std::string& name, const NetworkFacts& facts, const InterfaceFilter& filter);

/// Why the ranks of other machines cannot reach those of a host with this address; "" if they perhaps can.
std::string loopback_obstacle(const std::string& name, const HostAddress& address);

/// Finds the address of a host that joins a running job. The hosts of the job keep their addresses: each of them tries
/// the newcomer's, and the newcomer tries that of the first one. Where no host is left, the newcomer is the only one.
/// Threads  the executor's one thread.
class NewcomerProbe {
 public:
  /// A host, by the job's index.
  struct Member {
    int host = 0;
    ProbedHost probed;
    HostAddress address;  ///< not that of the newcomer
  };
  using Send = NetworkProbe::Send;
  /// Called once, from start() or from the loop; see NetworkProbe for the errors.
  using Done = std::function<void(const Status& status, const HostAddress& address)>;

  /// `members`: the hosts whose ranks the newcomer's will have to reach.
  NewcomerProbe(const boost::asio::any_io_executor& executor, Member newcomer, std::vector<Member> members,
                const InterfaceFilter& filter, Send send, Done done, NetworkProbe::Times times = {});

  /// `number`: see NetworkProbe.
  void start(std::int64_t number = 0);
  /// Ends it without a result, because a host that takes part is lost.
  void give_up();
  /// The host takes part.
  bool asks(int host) const;
  /// See NetworkProbe.
  void on_frame(int host, ToLauncher type, std::string_view payload);

 private:
  const boost::asio::any_io_executor executor_;
  const Member newcomer_;
  const std::vector<Member> members_;
  const InterfaceFilter filter_;
  const Send send_;
  const Done done_;
  const NetworkProbe::Times times_;
  std::optional<NetworkProbe> probe_;
};

}  // namespace runjob
