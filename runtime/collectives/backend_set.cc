#include "runtime/collectives/backend_set.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "base/error.hpp"
#include "runtime/collectives/address_set.hpp"

namespace runjob::runtime {
namespace {

std::vector<DataBackend*> in_order(const std::vector<std::unique_ptr<DataBackend>>& data, Backend& base) {
  std::vector<DataBackend*> backends;
  for (const auto& backend : data) backends.push_back(backend.get());
  backends.push_back(&base);
  return backends;
}

}  // namespace

BackendSet::BackendSet(std::unique_ptr<Backend> base, std::vector<std::unique_ptr<DataBackend>> data)
    : base_(std::move(base)), data_(std::move(data)), all_(in_order(data_, *base_)) {}

bool BackendSet::has_own_addresses() const {
  return std::any_of(data_.begin(), data_.end(), [](const auto& backend) { return !backend->address().empty(); });
}

std::string BackendSet::address() const {
  if (!has_own_addresses()) return base_->address();
  std::vector<std::string> addresses;
  for (const DataBackend* backend : all_) addresses.push_back(backend->address());
  return join_addresses(addresses);
}

Status BackendSet::connect(const std::vector<std::string>& addresses) {
  if (!has_own_addresses()) return base_->connect(addresses);
  std::vector<std::vector<std::string>> by_backend(all_.size());
  try {
    for (std::size_t rank = 0; rank < addresses.size(); ++rank) {
      const std::vector<std::string> parts = split_addresses(addresses[rank], all_.size(), rank);
      for (std::size_t i = 0; i < parts.size(); ++i) by_backend[i].push_back(parts[i]);
    }
  } catch (const Error& error) {
    return Status(error);
  }
  for (std::size_t i = 0; i < all_.size(); ++i) {
    Status status = all_[i]->connect(by_backend[i]);
    if (!status.ok()) return status;
  }
  return {};
}

/// Null for none.
DataBackend* BackendSet::backend_of(const Call& call) const {
  for (DataBackend* backend : all_) {
    if (backend->supports(call)) return backend;
  }
  return nullptr;
}

bool BackendSet::supports(const Call& call) const {
  return backend_of(call) != nullptr;
}

std::string BackendSet::objection(const Call& call) const {
  for (const DataBackend* backend : all_) {
    if (std::string why = backend->objection(call); !why.empty()) return why;
  }
  return {};
}

Status BackendSet::begin_work(const DeviceSubmission& submission, std::shared_ptr<DeviceWork>& work) {
  for (DataBackend* backend : all_) {
    Status status = backend->begin_work(submission, work);
    if (!status.ok() || work) return status;
  }
  return {};
}

Status BackendSet::refusal(const Call& call) {
  DataBackend* const backend = backend_of(call);
  return backend == nullptr ? Status() : backend->refusal(call);
}

Status BackendSet::run(const Call& call) {
  return run_together({&call, 1});
}

Status BackendSet::run_together(std::span<const Call> calls) {
  const Call& call = calls.front();
  if (DataBackend* const backend = backend_of(call))
    return calls.size() == 1 ? backend->run(call) : backend->run_together(calls);
  return Status(Errc::kUnavailable, fmt::format("no backend of this job can run an operation of {} values in {}",
                                                to_string(call.dtype), to_string(call.memory.kind)));
}

bool BackendSet::only_queues(const Call& call) const {
  const DataBackend* const backend = backend_of(call);
  return backend != nullptr && backend->only_queues(call);
}

std::shared_ptr<BufferAllocator> BackendSet::buffers(MemoryKind kind) const {
  for (const DataBackend* backend : all_) {
    if (auto allocator = backend->buffers(kind)) return allocator;
  }
  return nullptr;
}

void BackendSet::on_failure(std::function<void(const Status&)> report) {
  for (DataBackend* backend : all_) backend->on_failure(report);
}

std::optional<Status> BackendSet::device_outcome() const {
  for (const DataBackend* backend : all_) {
    if (std::optional<Status> outcome = backend->device_outcome(); !outcome || !outcome->ok()) return outcome;
  }
  return Status();
}

std::string BackendSet::unfinished() const {
  for (const DataBackend* backend : all_) {
    if (std::string text = backend->unfinished(); !text.empty()) return text;
  }
  return {};
}

void BackendSet::abort(const Status& why) {
  for (DataBackend* backend : all_) backend->abort(why);
}

}  // namespace runjob::runtime
