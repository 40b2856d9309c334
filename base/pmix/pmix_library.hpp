#pragma once

#include <string>
#include <vector>

#include "base/pmix/pmix_abi.hpp"

namespace runjob {

/// The functions of libpmix that runjob calls. The library stays open to the end of the process, because it may have
/// threads.
struct PmixLibrary {
  pmix::Status (*init)(pmix::Proc* self, pmix::Info* info, std::size_t count) = nullptr;
  pmix::Status (*finalize)(const pmix::Info* info, std::size_t count) = nullptr;
  pmix::Status (*put)(std::uint8_t scope, const char* key, pmix::Value* value) = nullptr;
  pmix::Status (*commit)() = nullptr;
  pmix::Status (*fence)(const pmix::Proc* ranks, std::size_t count, const pmix::Info* info, std::size_t info_count,
                        pmix::OperationDone done, void* context) = nullptr;
  pmix::Status (*get)(const pmix::Proc* rank, const char* key, const pmix::Info* info, std::size_t count,
                      pmix::ValueFound found, void* context) = nullptr;
  pmix::Status (*add_event_handler)(pmix::Status* codes, std::size_t count, pmix::Info* info, std::size_t info_count,
                                    pmix::EventHandler handler, pmix::EventHandlerAdded added, void* context) = nullptr;
  const char* (*error_text)(pmix::Status status) = nullptr;
};

/// Opens libpmix: the one that this process has opened already, as an MPI does; otherwise the first one found in
/// `folders`, and then where the system looks.
/// Errors  Error(kUnavailable) with the system's message, such as "libpmix.so.2: cannot open shared object file: ...".
PmixLibrary open_pmix_library(const std::vector<std::string>& folders = {});

}  // namespace runjob
