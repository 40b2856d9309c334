#pragma once

#include <map>
#include <string>
#include <vector>

namespace runjob {

/// Why the present generation of an elastic job ends. Ranks that lost their connection to the one that failed often
/// report this before its own reason or end is known, so all reasons count until the next generation is formed: the
/// strongest kind is the cause, and of several reasons of one kind the first. Lost hosts are all named.
/// Pure.
/// Threads  one.
class GenerationCause {
 public:
  /// From the weakest to the strongest.
  enum class Kind {
    kNone,
    kHostsChanged,      ///< the members leave it at a commit
    kLostConnection,    ///< a member has lost another one, and can give no other reason
    kLostWhileForming,  ///< a member that waited for the next generation was lost
    kEndOfVictim,       ///< a member ended that had reported the loss of another one
    kAbsence,           ///< a member did not come back in time
    kError,             ///< an error of a member's own, which lives on
    kEnd,               ///< a member ended, or the others waited too long for it
    kHostLost           ///< as strong as kEnd
  };

  /// A member reports that it is failing: by an error of its `own`, or because it has lost another member. Reports come
  /// before the end of a process and before it is ready. The first one of a process counts.
  void report(int process, bool own, const std::string& reason);
  /// What the process has reported as an error of its own; "" if nothing.
  std::string own_error(int process) const;
  /// The kind of a process's end, or of the error with which it asks for the next generation. `otherwise`: its kind if
  /// it has not reported that it lost another member.
  Kind kind_for(int process, Kind of_victim, Kind otherwise) const;

  /// A host that was lost after the first one, or after the end of a member, is added to the reasons: of many hosts the
  /// first four, and how many others. `consequence`: "; s2 is excluded for ever", or "" for none.
  void note(Kind kind, const std::string& reason, const std::string& consequence = "");
  /// Adds a consequence to the text.
  void add(const std::string& consequence) { text_ += consequence; }
  /// A host is excluded with a member. Returns the consequence: "; s2 is excluded for ever".
  std::string exclude(const std::string& host, const std::string& duration);
  /// Another generation is formed: nothing is known about its end.
  void clear();

  /// The reasons, each with its consequence.
  std::string text() const { return with_other_hosts(text_); }
  /// The reasons alone.
  std::string reason() const { return with_other_hosts(reason_); }
  /// The hosts that were excluded: "s2", "s3 for 20 s".
  const std::vector<std::string>& excluded() const { return excluded_; }
  /// Nothing is known but that members have lost each other: the network between them may have failed.
  bool is_lost_connection() const { return kind_ == Kind::kLostConnection; }
  /// A rank has ended the generation by a failure of its own, and no host was lost.
  bool is_own_failure() const;

 private:
  struct Report {
    bool own = false;
    std::string reason;
  };

  std::string with_other_hosts(const std::string& text) const;

  Kind kind_ = Kind::kNone;
  std::string text_;
  std::string reason_;
  std::vector<std::string> excluded_;
  int lost_hosts_ = 0;
  std::map<int, Report> reports_;  // by process
};

}  // namespace runjob
