#include <algorithm>
#include <map>
#include <memory>
#include <runjob/runjob.h>

#include <fmt/format.h>

#include "base/environment.hpp"
#include "base/error.hpp"
#include "base/screen_text.hpp"
#include "runtime/c_operation.hpp"
#include "runtime/c_status.hpp"
#include "runtime/mpi_start/host_identity.hpp"
#include "runtime/process.hpp"

/// The C interface of process sets.

namespace {

using namespace runjob::runtime;
using runjob::Errc;
using runjob::Error;
using runjob::Status;

std::vector<int> to_ranks(const int32_t* ranks, int32_t count) {
  if (count < 0 || (count > 0 && ranks == nullptr)) {
    throw Error(Errc::kInvalidArgument, fmt::format("a process set of {} ranks at {}", count, fmt::ptr(ranks)));
  }
  return std::vector<int>(ranks, ranks + count);
}

Process::InitArguments to_arguments(const int32_t* ranks, const int32_t* sizes, int32_t count, int32_t dynamic) {
  Process::InitArguments arguments;
  arguments.dynamic_process_sets = dynamic != 0;
  for (const int size : to_ranks(sizes, count)) {
    arguments.process_sets.push_back(to_ranks(ranks, size));
    std::sort(arguments.process_sets.back().begin(), arguments.process_sets.back().end());
    ranks += size;
  }
  return arguments;
}

/// The part of a reason that the other ranks get.
std::string to_reason(const char* reason) {
  constexpr std::size_t kMostBytes = 1000;
  return runjob::one_line(std::string(reason == nullptr ? "no reason" : reason).substr(0, kMostBytes));
}

template <class Use>
auto with_process_sets(Use use) {
  return Process::current().with_job([&](const Job& job) { return use(*job.process_sets); });
}

/// The caller's exchange as a function.
Exchange to_exchange(runjob_exchange exchange, void* context) {
  if (exchange == nullptr) throw Error(Errc::kInvalidArgument, "there is no function for the exchange");
  return [exchange, context](const std::string& own) {
    std::map<int32_t, std::string> answers;
    const auto receive = [](void* to, int32_t rank, const void* blob, size_t bytes) {
      (*static_cast<std::map<int32_t, std::string>*>(to))[rank].assign(static_cast<const char*>(blob), bytes);
    };
    const char* const failure = exchange(context, own.data(), own.size(), receive, &answers);
    if (failure != nullptr) throw Error(Errc::kConnect, fmt::format("the exchange failed: {}", failure));
    std::vector<std::string> texts;
    for (auto& [rank, text] : answers) {
      if (rank != static_cast<int32_t>(texts.size()))
        throw Error(Errc::kProtocol, fmt::format("the exchange gave no answer of rank {}", texts.size()));
      texts.push_back(std::move(text));
    }
    return texts;
  };
}

void remove(const Job& job, int32_t id) {
  job.process_sets->remove(id);
  job.messages->end_set(id, Status(Errc::kAborted, fmt::format("process set {} was removed", id)));
}

/// The set's messages end on this rank; on the others they end by their own time limits.
void give_up(const Job& job, int32_t id, const std::string& reason) {
  job.process_sets->give_up(id, reason);
  if (id >= ProcessSets::kFirstMembersId) job.messages->end_set(id, Status(Errc::kAborted, reason));
}

/// Runs a change of the sets after init().
template <class Change>
runjob_code guarded_change(Change change) noexcept {
  return runjob::runtime::guarded([&] {
    Process::current().with_job([&](const Job& job) {
      if (!job.process_sets->is_dynamic()) {
        throw Error(Errc::kInvalidArgument,
                    "process sets can be added and removed after init() only with RUNJOB_DYNAMIC_PROCESS_SETS=1 (or "
                    "HOROVOD_DYNAMIC_PROCESS_SETS=1) in the environment, or with an argument of init(): in Python "
                    "init(process_sets=\"dynamic\")");
      }
      change(job);
    });
    return Status();
  });
}

/// Copies at most `room` values.
void give(const std::vector<int>& values, int32_t* to, int32_t room, int32_t* count) {
  if (count == nullptr || room < 0 || (room > 0 && to == nullptr)) {
    throw Error(Errc::kInvalidArgument, "a list needs somewhere to be put");
  }
  *count = static_cast<int32_t>(values.size());
  std::copy_n(values.begin(), std::min<std::size_t>(values.size(), static_cast<std::size_t>(room)), to);
}

/// Calls `property`; returns -1 for an error.
template <class Property>
int number_of(Property property) noexcept {
  int result = -1;
  static_cast<void>(guarded([&] {
    result = with_process_sets(property);
    return Status();
  }));
  return result;
}

}  // namespace

runjob_code runjob_init_with_process_sets(const int32_t* ranks, const int32_t* sizes, int32_t count, int32_t dynamic) {
  return guarded([&] {
    Process::current().init(runjob::current_environment(), to_arguments(ranks, sizes, count, dynamic));
    return Status();
  });
}

runjob_code runjob_init_with_exchange(int32_t rank, int32_t size, runjob_exchange exchange, void* context,
                                      const int32_t* ranks, const int32_t* sizes, int32_t count, int32_t dynamic) {
  return guarded([&] {
    const runjob::Environment environment = runjob::current_environment();
    const auto host = environment.find("RUNJOB_HOSTNAME");
    Process::InitArguments arguments = to_arguments(ranks, sizes, count, dynamic);
    arguments.own = {rank, size, host == environment.end() ? host_name() : host->second,
                     to_exchange(exchange, context)};
    Process::current().init(environment, arguments);
    return Status();
  });
}

runjob_code runjob_process_set_add(const int32_t* ranks, int32_t count, int32_t* id) {
  return guarded_change([&](const Job& job) {
    if (id == nullptr) throw Error(Errc::kInvalidArgument, "a process set needs somewhere to put its number");
    *id = job.process_sets->add(to_ranks(ranks, count));
    job.object_seals->begin_set(*id);
    job.messages->begin_set(*id);
  });
}

runjob_code runjob_process_set_add_members(const int32_t* ranks, int32_t count, runjob_exchange exchange, void* context,
                                           int32_t* id) {
  return guarded([&] {
    if (id == nullptr) throw Error(Errc::kInvalidArgument, "a process set needs somewhere to put its number");
    Process::current().with_job([&](const Job& job) {
      *id = job.process_sets->add_members(to_ranks(ranks, count), to_exchange(exchange, context));
      job.object_seals->begin_set(*id);
    });
    return Status();
  });
}

runjob_code runjob_process_set_remove(int32_t id) {
  if (id >= ProcessSets::kFirstMembersId) {
    return guarded([&] {
      Process::current().with_job([&](const Job& job) { remove(job, id); });
      return Status();
    });
  }
  return guarded_change([&](const Job& job) { remove(job, id); });
}

runjob_code runjob_process_set_give_up(int32_t id, const char* reason) {
  return guarded([&] {
    Process::current().with_job([&](const Job& job) { give_up(job, id, to_reason(reason)); });
    return Status();
  });
}

runjob_code runjob_give_up(runjob_handle handle, const char* reason) {
  return guarded([&] {
    const std::shared_ptr<Completion> completion = find(handle);
    const std::shared_ptr<OperationOwner> owner = Process::current().handles().owner(handle);
    if (completion->done() || !owner) return Status();
    const auto engine = std::dynamic_pointer_cast<Engine>(owner);
    if (!engine) throw Error(Errc::kInvalidArgument, "a message cannot be given up alone; give its process set up");
    const auto origin = engine->origin_of(*completion);
    if (!origin) return Status();
    const std::string text = fmt::format("{}: {}", origin->operation, to_reason(reason));
    Process::current().with_job([&](const Job& job) { give_up(job, origin->process_set, text); });
    return Status();
  });
}

int runjob_process_set_size(int32_t id) {
  return number_of([&](ProcessSets& sets) { return static_cast<int>(sets.ranks(id).size()); });
}

int runjob_process_set_rank(int32_t id) {
  return number_of([&](ProcessSets& sets) {
    const std::vector<int> ranks = sets.ranks(id);
    const auto found = std::find(ranks.begin(), ranks.end(), sets.own_rank());
    return found == ranks.end() ? -1 : static_cast<int>(found - ranks.begin());
  });
}

runjob_code runjob_process_set_ids(int32_t* ids, int32_t room, int32_t* count) {
  return guarded([&] {
    give(with_process_sets([](ProcessSets& sets) { return sets.ids(); }), ids, room, count);
    return Status();
  });
}

runjob_code runjob_process_set_ranks(int32_t id, int32_t* ranks, int32_t room, int32_t* count) {
  return guarded([&] {
    give(with_process_sets([&](ProcessSets& sets) { return sets.ranks(id); }), ranks, room, count);
    return Status();
  });
}
