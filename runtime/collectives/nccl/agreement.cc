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
  own.keeps_order = settings.keeps_order;
  own.must_encrypt = mesh.encrypts && mesh.has_several_hosts();
  own.shares_ranks = options.terms.shares_ranks;
  if (own.must_encrypt) return own;  // making an id would open a port of NCCL's
  try {
    const cuda::CurrentGpu current(gpu);
    loaded = &library(settings.library);
    own.nccl = loaded->version;
    own.path = loaded->path;
    const int streams = mesh.rank == 0 ? std::clamp(options.terms.streams, 1, kMostDeviceStreams) : 0;
    for (int stream = 0; stream < streams && (stream == 0 || stream_objection({&own, 1}).empty()); ++stream) {
      const UniqueId id = make_id(*loaded, gpu, mesh.connect_timeout, is_given_up);
      own.ids.append(id.bytes, sizeof id.bytes);
    }
  } catch (const Error& error) {
    own.error = error.what();
  }
  return own;
}

/// The ids of the communicators that rank 0 has offered; the first one alone where there cannot be several.
std::vector<UniqueId> agreed_ids(std::span<const Offer> offers) {
  const std::string& bytes = offers.front().ids;
  std::vector<UniqueId> ids(std::max<std::size_t>(1, bytes.size() / sizeof(UniqueId)));
  std::memcpy(ids.data(), bytes.data(), std::min(bytes.size(), ids.size() * sizeof(UniqueId)));
  if (!stream_objection(offers).empty()) ids.resize(1);
  return ids;
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
  const std::vector<UniqueId> ids = agreed_ids(offers);
  if (mesh.rank == 0 && options.terms.streams > 1 && ids.size() == 1) {
    options.log(true, fmt::format("collectives on GPUs run on one stream, although --num-nccl-streams is {}: {}",
                                  options.terms.streams, stream_objection(offers)));
  }
  Agreement agreed;
  agreed.lanes = std::make_shared<Lanes>(*loaded, gpu, stream, ids, mesh.rank, mesh.size);
  agreed.lanes->set_up(mesh.connect_timeout, is_given_up);
  options.log(false, fmt::format("NCCL {} ({}) connects {} ranks on {} stream{}; this rank uses {}",
                                 version_text(loaded->version), loaded->path, mesh.size, ids.size(),
                                 ids.size() == 1 ? "" : "s", gpu.text()));
  agreed.is_ordered = std::any_of(offers.begin(), offers.end(), [](const Offer& each) { return each.shares_ranks; });
  agreed.library = loaded;
  return agreed;
}

}  // namespace runjob::runtime::nccl
