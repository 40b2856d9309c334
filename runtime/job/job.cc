#include "runtime/job/job.hpp"

#include <algorithm>
#include <functional>
#include <string_view>
#include <unistd.h>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/error.hpp"
#include "base/log.hpp"
#include "base/version.hpp"
#include "rendezvous/client.hpp"
#include "rendezvous/meeting_place.hpp"
#include "runtime/backends/backend_text.hpp"
#include "runtime/job/mesh_setup.hpp"
#include "runtime/life/goodbye.hpp"
#include "runtime/mpi_start/key_store.hpp"
#include "runtime/mpi_start/store_meeting.hpp"

namespace runjob::runtime {
namespace {

using rendezvous::JoinReply;
using rendezvous::MeetingPlace;

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

/// Rank 0 starts the trace before it meets the others. If it cannot, its blob reports this to them, as with everything
/// that a rank prepares.
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

/// Rank 0 opens the log before it meets the others; as make_timeline().
std::shared_ptr<AutotuneReport> make_autotune_report(const RuntimeConfig& config, const MeshPlan& plan, int generation,
                                                     BootstrapBlob& blob) {
  if (!config.autotune.is_on || plan.rank != 0) return nullptr;
  try {
    return std::make_shared<AutotuneReport>(config, plan.size(), !plan.has_one_host(), generation > 0);
  } catch (const Error& error) {
    blob.error = error.what();
    return nullptr;
  }
}

MeshPlan make_plan(const JoinReply& place, std::chrono::milliseconds timeout) {
  MeshPlan plan;
  plan.rank = place.rank;
  plan.members = host_of_each_rank(place);
  plan.hosts = place.hosts;
  plan.timeout = timeout;
  return plan;
}

/// Throws unless all ranks have given init() the same process sets.
void check_process_sets(const std::vector<BootstrapBlob>& blobs, const Members& members) {
  std::vector<std::string> texts;
  for (const BootstrapBlob& blob : blobs) {
    if (!blob.error.empty()) return;  // throws the blob's error, which is the better one
    texts.push_back(blob.process_sets);
  }
  if (std::adjacent_find(texts.begin(), texts.end(), std::not_equal_to<>()) == texts.end()) return;
  throw Error(Errc::kMismatch,
              fmt::format("the ranks give init() different process sets: {}", values_text(texts, members)));
}

/// The rendezvous of runjob's launcher.
class RendezvousMeeting : public MeetingPlace {
 public:
  explicit RendezvousMeeting(const RuntimeConfig& config)
      : address_(*config.rendezvous),
        client_(address_, config.rank, config.job_key_file),
        is_elastic_(config.elastic) {}

  std::string name() const override { return address_; }
  JoinReply join(std::optional<Milliseconds> timeout) override {
    constexpr Milliseconds kJoinTimeout{30000};
    return member(client_.join(timeout.value_or(kJoinTimeout)));
  }
  JoinReply join_next(const rendezvous::JoinRequest::Ready& ready) { return member(client_.join_next(ready)); }
  std::vector<std::string> gather(const std::string& name, const std::string& blob, Milliseconds timeout) override {
    if (!is_elastic_) return client_.gather(name, blob, timeout);
    return client_.gather(name, blob, size_, index_, timeout);  // the client's rank is the number of the process
  }
  // never called: an agent ends its ranks when it is lost
  void on_loss(std::function<void(const Status&)> /*notify*/) override {}

 private:
  JoinReply member(JoinReply reply) {
    size_ = reply.size;
    index_ = reply.rank;
    if (is_elastic_ && !reply.waiting) client_.set_generation(reply.generation);
    return reply;
  }

  std::string address_;
  rendezvous::Client client_;
  const bool is_elastic_;
  int size_ = 1, index_ = 0;  // in the present generation
};

/// The service at which the ranks meet; null for a job of this process alone.
std::unique_ptr<MeetingPlace> place_to_meet(const RuntimeConfig& config, InitCounts& counts) {
  if (config.rendezvous) return std::make_unique<RendezvousMeeting>(config);
  if (config.launcher.store == ForeignLauncher::Store::kNone) return nullptr;
  const int round = counts[{StoreMeeting::kName, /*generation=*/0}];
  return std::make_unique<StoreMeeting>(config.launcher, process_key_store(config.launcher), round);
}

/// The error of a process's first init(), for a user. A rank that has joined and does not come has mostly met the
/// process that was started as this rank: this one is a child of it.
Error explained(const Error& error) {
  const bool has_joined = std::string_view(error.what()).find("has not reached gather") != std::string_view::npos;
  if (error.code() != Errc::kTimeout || !has_joined) return error;
  return {Errc::kTimeout, fmt::format("{}. It has called init(), so it may have gone on with another process than this "
                                      "one (pid {}): a process that a rank starts is not a rank, and must not call "
                                      "init() beside it",
                                      error.what(), ::getpid())};
}

/// An exchange at the meeting place, once per init().
Gather gather_by(MeetingPlace& meeting, const JoinReply& place, const MeshPlan& plan, InitCounts& counts) {
  return [&meeting, &place, &plan, &counts](const std::string& stage, const BootstrapBlob& own) {
    int& round = counts[{meeting.name(), place.generation}];
    const bool is_first = stage == "mesh";
    const std::string name = fmt::format("runtime.init.{}.{}{}", place.generation, is_first ? round : round - 1,
                                         is_first ? "" : "." + stage);
    std::vector<BootstrapBlob> blobs;
    try {
      for (const std::string& bytes : meeting.gather(name, encode(own), plan.timeout)) {
        const int sender = static_cast<int>(blobs.size());
        blobs.push_back(decode_bootstrap_blob(bytes, rank_text(sender, plan.members)));
      }
    } catch (const Error& error) {
      if (is_first && round == 0) throw explained(error);
      throw;
    }
    if (is_first) {
      ++round;
      check_process_sets(blobs, plan.members);
    }
    return blobs;
  };
}

/// Messages need no agreement, so that they go on while some ranks leave, also when that ends the engine, which then
/// had an operation in flight. `listener`: where other ranks connect for them, also before this rank has any.
void follow(Engine& engine, const std::shared_ptr<RankMessages>& messages, int listener) {
  engine.on_visitors(listener, [weak = std::weak_ptr(messages)] {
    if (const std::shared_ptr<RankMessages> all = weak.lock()) all->accept_visitors();
  });
  engine.on_phase([weak = std::weak_ptr(messages)](PhaseEvent event, const Status& why) {
    const std::shared_ptr<RankMessages> all = weak.lock();
    if (!all) return;
    switch (event) {
      case PhaseEvent::kConnected:
        return;
      case PhaseEvent::kLeaving:
        return all->someone_leaves();
      case PhaseEvent::kReleased:
        return all->nobody_explains();
      case PhaseEvent::kEnd:
        return is_goodbye(why) ? all->someone_leaves() : all->end(why);
    }
  });
}

/// Makes the engine and the objects that belong to it.
void begin(Job& job, const RuntimeConfig& config, const MeshPlan& plan, Prepared prepared, const Meeting& meeting,
           std::shared_ptr<Timeline> timeline, Deadline deadline, NoticeWatch* watch = nullptr, int cancel = -1) {
  const Backend& backend = *prepared.backend;  // owned by the engine
  std::optional<Listener> listener = std::move(prepared.messages);
  const int visited = listener ? listener->socket.get() : -1;
  job.members = plan.members;
  job.engine = make_engine(config, plan, std::move(prepared), meeting, timeline, deadline, cancel);
  job.messages =
      make_messages(config, plan, std::move(listener), meeting, [weak = std::weak_ptr(job.engine)](const Status& why) {
        if (const std::shared_ptr<Engine> engine = weak.lock()) engine->fail(why);
      });
  follow(*job.engine, job.messages, visited);
  if (watch != nullptr) end_with_generation(*watch, job);
  job.object_seals = std::make_shared<ObjectSeals>(object_key(plan, meeting.root));
  job.engine->connect(meeting.addresses).throw_if_failed();
  job.timeline = timeline;
  job.timeline_options = timeline_options(config);
  if (config.timeline && plan.rank != 0) timeline->start(job.timeline_options);
  job.job_buffers = backend.buffers();
  job.bucket_bytes = meeting.root.bucket_bytes;
  job.process_sets = std::make_shared<ProcessSets>(
      JobFacts{config, plan.rank, plan.members, plan.hosts, plan.timeout, plan.job_key, timeline, job.job_buffers},
      job.engine);
  job.engine->on_failure([weak = std::weak_ptr(job.process_sets)](const Status& why) {
    if (const std::shared_ptr<ProcessSets> sets = weak.lock()) sets->end(why);
    return false;
  });
  job.engine->on_asked([weak = std::weak_ptr(job.process_sets)] {
    const std::shared_ptr<ProcessSets> sets = weak.lock();
    return sets ? sets->waits() : std::vector<Wait>();
  });
  if (watch != nullptr) end_with_generation(*watch, job);  // now with its process sets
}

/// Lines that are shown at level INFO or below have a stamp; the user who sees only warnings need not know their place.
void configure_log(const RuntimeConfig& config, const std::string& origin) {
  log::Stamp stamp = config.log_hides_time ? log::Stamp::kPlace : log::Stamp::kTimeAndPlace;
  if (config.log_level > log::Level::kInfo) stamp = log::Stamp::kNone;
  log::configure(config.log_level, origin, stamp);
}

void begin_log(const RuntimeConfig& config) {
  configure_log(config, "");
  for (const std::string& warning : config.warnings) log::warn("{}", warning);
}

/// The names of the job's hosts, the first few of many.
std::string host_names(const JoinReply& place) {
  constexpr std::size_t kMost = 8;
  const auto count = std::min(kMost, place.hostnames.size());
  const std::string names = fmt::format(
      "{}", fmt::join(place.hostnames.begin(), place.hostnames.begin() + static_cast<std::ptrdiff_t>(count), ", "));
  return count < place.hostnames.size() ? names + ", ..." : names;
}

void log_start(const JoinReply& place, const Meeting& meeting) {
  if (!log::enabled(log::Level::kInfo)) return;
  log::info("init(): rank {} of {}, local rank {} of {}; hosts: {} ({}); generation {}; runjob {}", place.rank,
            place.size, place.local_rank, place.local_size, place.hostnames.size(), host_names(place), place.generation,
            kVersion);
  log::info("backend: {}", meeting.backend);
}

Job join_alone(const RuntimeConfig& config) {
  Job job;
  job.place = place_of_single_process();
  const MeshPlan plan = make_plan(job.place, {});
  Prepared prepared = prepare_mesh(config, plan);
  const Meeting meeting{prepared.blob, {prepared.blob.mesh}, {}, backend_text({}, plan.hosts, {})};
  const std::shared_ptr<Timeline> timeline = make_timeline(config, plan, prepared.blob);
  job.autotune = make_autotune_report(config, plan, /*generation=*/0, prepared.blob);
  if (!prepared.blob.error.empty()) throw Error(Errc::kUnavailable, prepared.blob.error);
  begin(job, config, plan, std::move(prepared), meeting, timeline, {});
  log_start(job.place, meeting);
  return job;
}

using TimePoint = std::chrono::steady_clock::time_point;

/// Connects to the ranks of a generation in which this process has the place `given`. `watch` knows when that
/// generation ends; null in a job that is not elastic.
Job connect_job(const RuntimeConfig& config, MeetingPlace& meeting_place, JoinReply given, InitCounts& counts,
                const std::string& process_sets, TimePoint start, NoticeWatch* watch) {
  Job job;
  job.place = std::move(given);
  const JoinReply& place = job.place;
  configure_log(config, fmt::format("rank {} on {}: ", place.rank, place.hostname));
  const auto timeout = config.start_timeout.value_or(
      std::chrono::round<std::chrono::milliseconds>(std::chrono::duration<double>(place.start_timeout_seconds)));
  const Deadline deadline = start + timeout;

  const std::shared_ptr<EventFd> ended = watch != nullptr ? watch->begin(place.generation) : nullptr;
  MeshPlan plan = make_plan(place, timeout);
  if (config.job_key_file) plan.job_key = rendezvous::JobKey::read_file(*config.job_key_file);
  Prepared prepared = prepare_mesh(config, plan);
  prepared.blob.process_sets = process_sets;
  const std::shared_ptr<Timeline> timeline = make_timeline(config, plan, prepared.blob);
  job.autotune = make_autotune_report(config, plan, place.generation, prepared.blob);
  const Meeting meeting = meet(config, plan, prepared, gather_by(meeting_place, place, plan, counts));
  begin(job, config, plan, std::move(prepared), meeting, timeline, deadline, watch, ended ? ended->get() : -1);
  meeting_place.on_loss([weak = std::weak_ptr(job.engine)](const Status& why) {
    if (const std::shared_ptr<Engine> engine = weak.lock()) engine->fail(why);
  });
  if (config.rendezvous)
    job.failure_report = std::make_shared<FailureReport>(*config.rendezvous, config.elastic ? config.rank : place.rank);
  log_start(place, meeting);
  return job;
}

/// A place in a generation that is still to come.
Job wait_outside(const RuntimeConfig& config, JoinReply place) {
  Job job;
  job.place = std::move(place);
  job.place.waiting = true;
  job.bucket_bytes = config.bucket_bytes();
  configure_log(config, fmt::format("rank {} on {}: ", job.place.rank, job.place.hostname));
  log::info("init(): this process waits in elastic.run() for the next generation; it is meant to become rank {} of {}",
            job.place.rank, job.place.size);
  job.failure_report = std::make_shared<FailureReport>(*config.rendezvous, config.rank);
  return job;
}

/// True for errors after which the survivors of a generation form the next one.
bool is_loss(Errc code) {
  return code == Errc::kAborted || code == Errc::kPeerLost || code == Errc::kConnect || code == Errc::kTimeout;
}

}  // namespace

Job join_job(const RuntimeConfig& config, InitCounts& counts, const std::string& process_sets) {
  begin_log(config);
  const std::unique_ptr<MeetingPlace> meeting_place = place_to_meet(config, counts);
  if (!meeting_place) return join_alone(config);
  const auto start = std::chrono::steady_clock::now();
  JoinReply place = meeting_place->join(config.start_timeout);
  if (place.waiting) return wait_outside(config, std::move(place));
  try {
    return connect_job(config, *meeting_place, place, counts, process_sets, start, /*watch=*/nullptr);
  } catch (const Error& error) {
    if (!config.elastic || !is_loss(error.code()) || error.code() == Errc::kTimeout) throw;
    log::info("init(): generation {} has ended before it was connected: {}", place.generation, error.what());
  }
  return wait_outside(config, meeting_place->join(config.start_timeout));
}

Job join_job_at(MeetingPlace& meeting_place, const RuntimeConfig& config, InitCounts& counts,
                const std::string& process_sets) {
  begin_log(config);
  const auto start = std::chrono::steady_clock::now();
  return connect_job(config, meeting_place, meeting_place.join(config.start_timeout), counts, process_sets, start,
                     /*watch=*/nullptr);
}

Job join_next_generation(const RuntimeConfig& config, InitCounts& counts, rendezvous::JoinRequest::Ready ready,
                         NoticeWatch& watch) {
  RendezvousMeeting meeting_place(config);
  for (;;) {
    const JoinReply place = meeting_place.join_next(ready);
    const auto start = std::chrono::steady_clock::now();
    try {
      return connect_job(config, meeting_place, place, counts, "none", start, &watch);
    } catch (const Error& error) {
      watch.leave();
      if (!is_loss(error.code())) throw;
      log::info("generation {} has ended before it was connected: {}", place.generation, error.what());
      ready.steps = 0;
      ready.reason = error.code() == Errc::kTimeout ? error.what() : "";
    }
  }
}

void end_with_generation(NoticeWatch& watch, const Job& job) {
  watch.on_end([engine = std::weak_ptr(job.engine), sets = std::weak_ptr(job.process_sets)](const Status& why) {
    if (const auto all = engine.lock()) all->end(why);
    if (const auto each = sets.lock()) each->end(why);
  });
}

}  // namespace runjob::runtime
