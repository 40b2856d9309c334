#pragma once

#include <memory>
#include <string>

#include "runtime/collectives/backend.hpp"

/// The one place that knows which backends exist. All but the local one are modules of their own, opened on
/// demand from the folder `runjob` beside librunjob.so, so that nothing here needs their libraries to be
/// installed.
namespace runjob::runtime {

/// The backend for a job of this kind: none but the local one for a single rank, Gloo otherwise.
/// Errors  Error(kUnavailable) with the reason.
std::unique_ptr<Backend> make_backend(const MeshOptions& options);

/// What is there: {"backends": [{"name", "kind", "available", "version", "path", "reason"}, ...]}. Opens the
/// modules.
std::string backends_json();

}  // namespace runjob::runtime
