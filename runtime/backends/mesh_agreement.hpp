#pragma once

#include <string>
#include <vector>

namespace runjob::runtime {

/// The backend that all ranks of a mesh can use. Each rank derives it from the addresses of all ranks.
struct MeshAgreement {
  /// By rank: ranks that share memory have equal numbers. The ranks of a host share it if all of them can; otherwise
  /// each of them is a group of its own. Other hosts keep their groups.
  std::vector<int> groups;
  /// The ranks' settings differ, so every collective goes among all ranks alike.
  bool is_flat = false;
  /// True when every rank made its backend for these groups and settings. Otherwise all ranks need new addresses.
  bool is_as_prepared = true;
  /// The reason why some ranks of a host do not share memory although another one asks for it, with the rank's number;
  /// empty when there is none.
  std::string sharing_objection = {};
  /// The settings that differ, with the ranks' numbers; empty when they are alike.
  std::string settings_objection = {};
};

/// The agreement of all ranks. `addresses`: those of a shared-memory or a hierarchical backend, by rank. `hosts`: by
/// rank, equal numbers for ranks on one host. `names`: by rank, its number in messages; empty: the rank itself.
/// Pure: all ranks come to the same agreement.
/// Errors  Error(kProtocol) for a malformed address, with the rank that has sent it.
MeshAgreement agree_on_mesh(const std::vector<std::string>& addresses, const std::vector<int>& hosts,
                            const std::vector<int>& names = {});

}  // namespace runjob::runtime
