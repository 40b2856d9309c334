#include "runtime/collectives/nccl/agreement.hpp"

#include <algorithm>
#include <cstring>

#include <fmt/format.h>

#include "base/error.hpp"
#include "runtime/collectives/nccl/bounded_call.hpp"
#include "runtime/collectives/nccl/offer.hpp"

namespace runjob::runtime::nccl {
namespace {

UniqueId make_id(const Library& library, cuda::Gpu& gpu, std::chrono::milliseconds most,
                 const std::function<bool()>& is_given_up) {
  struct Made {
    UniqueId id{};
    Result result = kSuccess;
  };
  const auto made = std::make_shared<Made>();
  const auto make = [made, &library, &gpu] {
    try {
      const cuda::CurrentGpu current(gpu);
      made->result = library.get_unique_id(&made->id);
    } catch (const Error&) {
      made->result = -1;
    }
  };
  if (!run_bounded("runjob-nccl", most, make, is_given_up))
    throw Error(Errc::kTimeout,
                fmt::format("NCCL has not made an id within {} s", std::chrono::duration<double>(most).count()));
  check(library, made->result, "making a communicator's id");
  return made->id;
}

/// This rank's offer, for which it opens NCCL, if it may use it: `loaded`.
Offer make_offer(const DeviceOptions& options, const NcclSettings& settings, cuda::Gpu& gpu, const Library*& loaded,
                 const std::function<bool()>& is_given_up) {
  const MeshOptions& mesh = options.mesh;
  Offer own;
  own.rank = mesh.name(mesh.rank);
  own.gpu = gpu.uuid();
  own.vendor = cuda::driver().vendor;
  if (!mesh.hosts.empty()) own.host = mesh.hosts[static_cast<std::size_t>(mesh.rank)];
  own.host_id = settings.host_id;
  own.may_share = settings.may_share;
  own.must_encrypt = mesh.encrypts && mesh.has_several_hosts();
  own.shares_ranks = options.terms.shares_ranks;
  if (own.must_encrypt) return own;  // making an id would open a port of NCCL's
  try {
    const cuda::CurrentGpu current(gpu);
    loaded = &library(settings.library);
    own.nccl = loaded->version;
    own.path = loaded->path;
    if (mesh.rank == 0) {
      const UniqueId id = make_id(*loaded, gpu, mesh.connect_timeout, is_given_up);
      own.id.assign(id.bytes, sizeof id.bytes);
    }
  } catch (const Error& error) {
    own.error = error.what();
  }
  return own;
}

}  // namespace

std::vector<std::string> give_to_all(const DeviceOptions& options, const std::string& own) {
  const auto size = static_cast<std::size_t>(options.mesh.size);
  std::string all(own.size() * size, '\0');
  Call call;
  call.kind = Kind::kAllgather;
  call.input = own.data();
  call.output = all.data();
  call.count = own.size();
  call.counts.assign(size, own.size());
  options.host->run(call).throw_if_failed();
  std::vector<std::string> parts;
  for (std::size_t rank = 0; rank < size; ++rank) parts.push_back(all.substr(rank * own.size(), own.size()));
  return parts;
}

Agreement agree(const DeviceOptions& options, const NcclSettings& settings, cuda::Gpu& gpu, cuda::Stream stream,
                const std::function<bool()>& is_given_up) {
  const MeshOptions& mesh = options.mesh;
  const Library* loaded = nullptr;
  const Offer own = make_offer(options, settings, gpu, loaded, is_given_up);
  std::vector<Offer> offers;
  for (const std::string& bytes : give_to_all(options, encode(own)))
    offers.push_back(decode_offer(bytes, mesh.name(static_cast<int>(offers.size()))));
  if (const std::string why = objection(offers); !why.empty()) {
    if (mesh.rank == 0) options.log(true, "tensors on GPUs go through the host's memory: " + why);
    return {};
  }
  UniqueId id{};
  const std::string& offered = offers.front().id;
  std::memcpy(id.bytes, offered.data(), std::min(offered.size(), sizeof id.bytes));
  Agreement agreed;
  agreed.communicator = std::make_shared<Communicator>(*loaded, gpu, stream, mesh.rank, mesh.size);
  agreed.communicator->set_up(id, mesh.connect_timeout, is_given_up);
  options.log(false, fmt::format("NCCL {} ({}) connects {} ranks; this rank uses {}", version_text(loaded->version),
                                 loaded->path, mesh.size, gpu.text()));
  agreed.is_ordered = std::any_of(offers.begin(), offers.end(), [](const Offer& each) { return each.shares_ranks; });
  agreed.library = loaded;
  return agreed;
}

}  // namespace runjob::runtime::nccl
