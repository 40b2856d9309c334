#pragma once

#include <string>
#include <vector>

#include "runtime/backends/backend_registry.hpp"
#include "runtime/backends/mesh_agreement.hpp"

namespace runjob::runtime {

/// The backend of a mesh for tensors in host memory and the reason for it, as one line for people: "shared memory,
/// because all 4 ranks are on one host". All ranks with the same settings get the same text. Pure.
///
/// `agreement`  of all ranks, from agree_on_mesh()
/// `hosts`      by rank, equal numbers for ranks on one host
/// `settings`   those of this rank
std::string backend_text(const MeshAgreement& agreement, const std::vector<int>& hosts,
                         const BackendSettings& settings);

}  // namespace runjob::runtime
