#pragma once

#include <array>
#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

namespace runjob::rendezvous {

/// The ranks of a job and the stage that each process has reached, to name the ranks that are missing. No clock, no
/// I/O.
/// Threads  one.
class Roster {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;

  /// `hosts[r]`: the name of rank r's host.
  Roster(std::vector<std::string> hosts, std::chrono::milliseconds start_timeout);

  int size() const { return static_cast<int>(members_.size()); }

  /// Ranks outside the job are ignored. A rank may join again, and a new process may start in its place.
  void started(int rank, long pid, TimePoint now);
  void joined(int rank, TimePoint now);
  void exited(int rank, const std::string& how);

  /// "rank 13 on s4 has not called init() for 20 s (pid 812)", or what else keeps it from
  /// `reaching` ("gather 'x'"): "rank 13 on s4 has not reached gather 'x'".
  std::string why_missing(int rank, const std::string& reaching, TimePoint now) const;

  /// See Service::overdue().
  std::string overdue(TimePoint now) const;

  /// For GET /v1/status: how many ranks are in each stage, and the first ten that have not joined.
  nlohmann::json to_json(TimePoint now) const;

 private:
  enum class Stage { kNotStarted, kStarted, kJoined, kExitedUnjoined, kExited };
  struct Member {
    std::string host;
    Stage stage = Stage::kNotStarted;
    long pid = 0;
    TimePoint since;  ///< when it came to this stage
    std::string how_exited;
  };

  Member* find(int rank);
  void move_to(Member& member, Stage stage);
  int count(Stage stage) const { return counts_[static_cast<std::size_t>(stage)]; }
  std::string describe(int rank, TimePoint now) const;

  std::vector<Member> members_;
  std::array<int, 5> counts_{};  // of members by stage
  std::chrono::milliseconds start_timeout_;
  std::optional<TimePoint> first_join_;  ///< of a rank that may still be waiting for the others
};

/// At most ten of `lines` joined by `separator`, then "and N more".
std::string first_ten(const std::vector<std::string>& lines, const std::string& separator);

/// "20 s", rounded down.
std::string seconds_text(std::chrono::steady_clock::duration time);

}  // namespace runjob::rendezvous
