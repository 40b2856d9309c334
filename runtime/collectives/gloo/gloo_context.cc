#include "runtime/collectives/gloo/gloo_context.hpp"

#include <stdexcept>

#include <gloo/transport/address.h>
#include <gloo/transport/context.h>

namespace runjob::runtime {

GlooContext::GlooContext(int own_rank, int rank_count, std::shared_ptr<gloo::transport::Device> device,
                         std::chrono::milliseconds connect_timeout)
    : gloo::Context(own_rank, rank_count) {
  device_ = std::move(device);
  transportContext_ = transport_ = std::make_shared<AbortableTransport>(device_->createContext(rank, size));
  transport_->set_timeout(connect_timeout);  // a pair keeps what holds when it is made, for connecting
  for (int peer = 0; peer < size; ++peer) {
    if (peer != rank) transportContext_->createPair(peer);
  }
}

std::string GlooContext::addresses() const {
  std::string result;
  for (int peer = 0; peer < size; ++peer) {
    if (peer == rank) continue;
    const std::vector<char> bytes = transportContext_->getPair(peer)->address().bytes();
    result.append(bytes.data(), bytes.size());
  }
  return result;
}

void GlooContext::connect(const std::vector<std::string>& addresses) {
  for (int peer = 0; peer < size; ++peer) {
    if (peer == rank) continue;
    const std::string bytes = address_for(peer, addresses.at(static_cast<std::size_t>(peer)));
    try {
      transportContext_->getPair(peer)->connect({bytes.begin(), bytes.end()});
    } catch (const std::exception& error) {
      const int name = names_.empty() ? peer : names_.at(static_cast<std::size_t>(peer));
      throw std::runtime_error("connecting to rank " + std::to_string(name) + ": " + error.what());
    }
  }
}

void GlooContext::set_operation_timeout(std::chrono::milliseconds timeout) {
  setTimeout(timeout);
  transport_->set_timeout(timeout);
}

std::vector<Endpoint> GlooContext::own_endpoints() const {
  std::vector<Endpoint> result;
  for (int peer = 0; peer < size; ++peer) {
    if (peer == rank) continue;
    const std::vector<char> bytes = transportContext_->getPair(peer)->address().bytes();
    result.push_back(endpoint_of({bytes.data(), bytes.size()}));
  }
  return result;
}

std::vector<Endpoint> GlooContext::peer_endpoints(const std::vector<std::string>& addresses) const {
  std::vector<Endpoint> result;
  for (int peer = 0; peer < size; ++peer) {
    if (peer == rank) continue;
    result.push_back(endpoint_of(address_for(peer, addresses.at(static_cast<std::size_t>(peer)))));
  }
  return result;
}

/// Out of the addresses of rank `peer`, the one that is meant for this rank. All addresses have one length.
std::string GlooContext::address_for(int peer, const std::string& addresses) const {
  const std::size_t others = static_cast<std::size_t>(size) - 1;
  if (addresses.empty() || addresses.size() % others != 0) throw std::runtime_error("a rank's Gloo addresses are cut");
  const std::size_t length = addresses.size() / others;
  const auto place = static_cast<std::size_t>(rank < peer ? rank : rank - 1);
  return addresses.substr(place * length, length);
}

}  // namespace runjob::runtime
