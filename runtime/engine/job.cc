#include "runtime/engine/job.hpp"

#include <algorithm>
#include <functional>

#include <fmt/format.h>

#include "base/error.hpp"
#include "rendezvous/client.hpp"
#include "runtime/engine/mesh_setup.hpp"
#include "runtime/mpi_start/key_store.hpp"
#include "runtime/mpi_start/store_meeting.hpp"

namespace runjob::runtime {
namespace {

using rendezvous::JoinReply;

std::vector<std::string> host_of_each_rank(const JoinReply& place) {
  std::vector<std::string> hosts;
  for (const int host : place.hosts) hosts.push_back(place.hostnames.at(static_cast<std::size_t>(host)));
  if (hosts.size() != static_cast<std::size_t>(place.size) || place.rank < 0 || place.rank >= place.size) {
    throw Error(Errc::kProtocol, "the rendezvous gave a place that makes no sense");
  }
  return hosts;
}

JoinReply place_of_single_process() {
  JoinReply place;
  place.hostname = "localhost";
  place.hosts = {0};
  place.hostnames = {"localhost"};
  return place;
}

Timeline::Options timeline_options(const RuntimeConfig& config) {
  return {.path = config.timeline.value_or(""),
          .what = "RUNJOB_TIMELINE",
          .mark_cycles = config.timeline_mark_cycles,
          .all_ranks = config.timeline_all_ranks,
          .most_bytes = config.timeline_most_bytes};
}

/// Rank 0 begins the trace before it meets the others: as with what else a rank prepares, it tells them when it cannot.
std::shared_ptr<Timeline> make_timeline(const RuntimeConfig& config, const MeshPlan& plan, BootstrapBlob& blob) {
  std::vector<std::string> ranks;
  for (int rank = 0; rank < plan.size(); ++rank) ranks.push_back(rank_text(rank, plan.members));
  auto timeline = std::make_shared<Timeline>(plan.rank, std::move(ranks));
  try {
    if (config.timeline && plan.rank == 0) timeline->start(timeline_options(config));
  } catch (const Error& error) {
    blob.error = error.what();
  }
  return timeline;
}

MeshPlan make_plan(const JoinReply& place, std::chrono::milliseconds timeout) {
  MeshPlan plan;
  plan.rank = place.rank;
  plan.members = host_of_each_rank(place);
  plan.hosts = place.hosts;
  plan.timeout = timeout;
  return plan;
}

/// All ranks give init() the same process sets, or none of them gets any.
void check_process_sets(const std::vector<BootstrapBlob>& blobs, const Members& members) {
  std::vector<std::string> texts;
  for (const BootstrapBlob& blob : blobs) {
    if (!blob.error.empty()) return;  // that is the better error
    texts.push_back(blob.process_sets);
  }
  if (std::adjacent_find(texts.begin(), texts.end(), std::not_equal_to<>()) == texts.end()) return;
  throw Error(Errc::kMismatch,
              fmt::format("the ranks give init() different process sets: {}", values_text(texts, members)));
}

/// Our launcher's rendezvous.
class RendezvousMeeting : public MeetingPlace {
 public:
  explicit RendezvousMeeting(const RuntimeConfig& config)
      : address_(*config.rendezvous), client_(address_, config.rank, config.job_key_file) {}

  std::string name() const override { return address_; }
  JoinReply join(std::optional<Milliseconds> timeout) override {
    constexpr Milliseconds kJoinTimeout{30000};
    return client_.join(timeout.value_or(kJoinTimeout));
  }
  std::vector<std::string> gather(const std::string& name, const std::string& blob, Milliseconds timeout) override {
    return client_.gather(name, blob, timeout);
  }
  void on_loss(std::function<void(const Status&)> /*tell*/) override {}  // an agent takes its ranks with it

 private:
  std::string address_;
  rendezvous::Client client_;
};

/// Null for a job of this process alone.
std::unique_ptr<MeetingPlace> place_to_meet(const RuntimeConfig& config, InitCounts& counts) {
  if (config.rendezvous) return std::make_unique<RendezvousMeeting>(config);
  if (config.launcher.store == ForeignLauncher::Store::kNone) return nullptr;
  const int round = counts[{StoreMeeting::kName, /*generation=*/0}];
  return std::make_unique<StoreMeeting>(config.launcher, process_key_store(config.launcher), round);
}

/// At the meeting place, once per init().
Gather gather_by(MeetingPlace& meeting, const JoinReply& place, const MeshPlan& plan, InitCounts& counts) {
  return [&meeting, &place, &plan, &counts](const std::string& stage, const BootstrapBlob& own) {
    int& round = counts[{meeting.name(), place.generation}];
    const bool is_first = stage == "mesh";
    const std::string name = fmt::format("runtime.init.{}.{}{}", place.generation, is_first ? round : round - 1,
                                         is_first ? "" : "." + stage);
    std::vector<BootstrapBlob> blobs;
    for (const std::string& bytes : meeting.gather(name, encode(own), plan.timeout)) {
      blobs.push_back(decode_bootstrap_blob(bytes));
    }
    if (is_first) {
      ++round;
      check_process_sets(blobs, plan.members);
    }
    return blobs;
  };
}

/// Makes the engine and what goes with it.
void begin(Job& job, const RuntimeConfig& config, const MeshPlan& plan, Prepared prepared, const Meeting& meeting,
           std::shared_ptr<Timeline> timeline, Deadline deadline) {
  const Backend& backend = *prepared.backend;  // the engine keeps it
  job.engine = make_engine(config, plan, std::move(prepared), meeting, timeline, deadline);
  job.engine->connect(meeting.addresses).throw_if_failed();
  job.timeline = timeline;
  job.timeline_options = timeline_options(config);
  if (config.timeline && plan.rank != 0) timeline->start(job.timeline_options);
  job.symmetric_heap = backend.symmetric_heap();
  job.process_sets = std::make_shared<ProcessSets>(
      JobFacts{config, plan.rank, plan.members, plan.hosts, plan.timeout, timeline, job.symmetric_heap}, job.engine);
  job.engine->on_failure([weak = std::weak_ptr(job.process_sets)](const Status& why) {
    if (const std::shared_ptr<ProcessSets> sets = weak.lock()) sets->end(why);
    return false;
  });
}

Job join_alone(const RuntimeConfig& config) {
  Job job;
  job.place = place_of_single_process();
  const MeshPlan plan = make_plan(job.place, {});
  Prepared prepared = prepare_mesh(config, plan);
  const Meeting meeting{prepared.blob, {prepared.blob.mesh}};
  const std::shared_ptr<Timeline> timeline = make_timeline(config, plan, prepared.blob);
  if (!prepared.blob.error.empty()) throw Error(Errc::kUnavailable, prepared.blob.error);
  begin(job, config, plan, std::move(prepared), meeting, timeline, {});
  return job;
}

}  // namespace

Job join_job(const RuntimeConfig& config, InitCounts& counts, const std::string& process_sets) {
  log::configure(config.log_level, "");
  for (const std::string& warning : config.warnings) log::warn("{}", warning);
  const auto start = std::chrono::steady_clock::now();
  const std::unique_ptr<MeetingPlace> meeting_place = place_to_meet(config, counts);
  if (!meeting_place) return join_alone(config);
  Job job;
  job.place = meeting_place->join(config.start_timeout);
  const JoinReply& place = job.place;
  log::configure(config.log_level, fmt::format("rank {} on {}: ", place.rank, place.hostname));
  const auto timeout = config.start_timeout.value_or(
      std::chrono::round<std::chrono::milliseconds>(std::chrono::duration<double>(place.start_timeout_seconds)));
  const Deadline deadline = start + timeout;

  const MeshPlan plan = make_plan(place, timeout);
  Prepared prepared = prepare_mesh(config, plan);
  prepared.blob.process_sets = process_sets;
  const std::shared_ptr<Timeline> timeline = make_timeline(config, plan, prepared.blob);
  const Meeting meeting = meet(config, plan, prepared, gather_by(*meeting_place, place, plan, counts));
  begin(job, config, plan, std::move(prepared), meeting, timeline, deadline);
  meeting_place->on_loss([weak = std::weak_ptr(job.engine)](const Status& why) {
    if (const std::shared_ptr<Engine> engine = weak.lock()) engine->fail(why);
  });
  if (config.rendezvous) job.failure_report = std::make_unique<FailureReport>(*config.rendezvous, place.rank);
  return job;
}

}  // namespace runjob::runtime
