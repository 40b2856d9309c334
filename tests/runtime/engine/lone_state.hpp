#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "runtime/backends/local_backend.hpp"
#include "runtime/engine/engine_state.hpp"

namespace runjob::runtime {

/// The state of an engine for parts that are tested without the others: rank 0 of a job of one rank or, where only this
/// rank is looked at, of several.
inline EngineParts lone_parts(std::unique_ptr<Backend> backend = std::make_unique<LocalBackend>(), int size = 1,
                              BackendSet::MakeDevice make_device = {}) {
  EngineParts parts;
  parts.members = std::vector<std::string>(static_cast<std::size_t>(size), "a");
  parts.control = std::make_unique<Coordinator>(parts.members, std::vector<ControlChannel>(1), nullptr);
  parts.backends = std::make_unique<BackendSet>(std::move(backend), std::move(make_device));
  return parts;
}

/// An allreduce of one element, in place.
inline Submission sum_of(const std::string& name, std::int32_t& value) {
  return {name, {.kind = Kind::kAllreduce, .dtype = DType::kInt32, .shape = {1}}, &value, &value};
}

/// Puts an operation in flight, as Engine::submit() does.
inline std::shared_ptr<Completion> put(EngineState& state, Submission submission) {
  const MutexLock lock(state.mutex);
  state.work.add(submission.name, submission.signature, true);
  return state.work.operations.insert(std::move(submission));
}

inline void set_running(EngineState& state) {
  const MutexLock lock(state.mutex);
  state.phase.enter(PhaseEvent::kConnected, {});
}

inline std::vector<LifeReport> reports_of(EngineState& state) {
  const MutexLock lock(state.mutex);
  return state.reports;
}

inline Status outcome(const Completion& completion) {
  return completion.wait(std::nullopt).value();
}

}  // namespace runjob::runtime
