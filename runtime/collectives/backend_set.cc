#include "runtime/collectives/backend_set.hpp"

#include <utility>

#include <fmt/format.h>

#include "base/json_text.hpp"
#include "runtime/collectives/json_bytes.hpp"

namespace runjob::runtime {
namespace {

using nlohmann::json;

/// The addresses of a rank's backends. Errors  json::exception when `address` is not that of a set.
std::vector<std::string> split(const std::string& address) {
  std::vector<std::string> parts;
  for (const json& part : parse_cbor(address)) parts.push_back(from_binary(part));
  return parts;
}

}  // namespace

BackendSet::BackendSet(std::unique_ptr<Backend> base, std::vector<std::unique_ptr<DataBackend>> data)
    : base_(std::move(base)), data_(std::move(data)) {}

std::vector<DataBackend*> BackendSet::all() const {
  std::vector<DataBackend*> backends;
  for (const auto& backend : data_) backends.push_back(backend.get());
  backends.push_back(base_.get());
  return backends;
}

std::string BackendSet::address() const {
  json parts = json::array();
  for (const DataBackend* backend : all()) parts.push_back(to_binary(backend->address()));
  return cbor_bytes(parts);
}

Status BackendSet::connect(const std::vector<std::string>& addresses) {
  const std::vector<DataBackend*> backends = all();
  std::vector<std::vector<std::string>> by_backend(backends.size());
  try {
    for (std::size_t rank = 0; rank < addresses.size(); ++rank) {
      const std::vector<std::string> parts = split(addresses[rank]);
      if (parts.size() != backends.size()) {
        return Status(Errc::kProtocol, fmt::format("rank {} has {} backends, this rank has {}: all ranks need the same",
                                                   rank, parts.size(), backends.size()));
      }
      for (std::size_t i = 0; i < parts.size(); ++i) by_backend[i].push_back(parts[i]);
    }
  } catch (const json::exception& error) {
    return Status(Errc::kProtocol, fmt::format("a malformed address of a set of backends: {}", error.what()));
  }
  for (std::size_t i = 0; i < backends.size(); ++i) {
    Status status = backends[i]->connect(by_backend[i]);
    if (!status.ok()) return status;
  }
  return {};
}

bool BackendSet::supports(const Call& call) const {
  for (const DataBackend* backend : all()) {
    if (backend->supports(call)) return true;
  }
  return false;
}

Status BackendSet::run(const Call& call) {
  for (DataBackend* backend : all()) {
    if (backend->supports(call)) return backend->run(call);
  }
  return Status(Errc::kUnavailable, fmt::format("no backend of this job can run an operation of {} values in {}",
                                                to_string(call.dtype), to_string(call.memory.kind)));
}

std::shared_ptr<BufferAllocator> BackendSet::buffers(MemoryKind kind) const {
  for (const DataBackend* backend : all()) {
    if (auto allocator = backend->buffers(kind)) return allocator;
  }
  return nullptr;
}

void BackendSet::abort(const Status& why) {
  for (DataBackend* backend : all()) backend->abort(why);
}

}  // namespace runjob::runtime
