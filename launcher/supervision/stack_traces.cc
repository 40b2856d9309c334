#include "launcher/supervision/stack_traces.hpp"

#include <chrono>
#include <utility>

#include "launcher/supervision/stack_report.hpp"

namespace runjob {
namespace {

using namespace std::chrono_literals;

// At most 5 s together: so long --timeout may be exceeded.
constexpr auto kNativeLimit = 3250ms;  // the agents' tools have 2.5 s
constexpr auto kPythonLimit = 1500ms;

}  // namespace

StackTraces::StackTraces(boost::asio::any_io_executor executor, Hooks hooks)
    : hooks_(std::move(hooks)), limit_(executor) {}

void StackTraces::start(const std::vector<int>& ranks) {
  hooks_.send(ToAgent::kStackTraces);
  for (const int rank : ranks) traces_[rank].missing = "its host did not answer in time";
  wait_for(Phase::kNative, {ranks.begin(), ranks.end()});
}

void StackTraces::on_trace(int rank, StackTrace trace) {
  if (phase_ != Phase::kNative) return;
  traces_[rank] = std::move(trace);
  no_longer(rank);
}

void StackTraces::on_rank_gone(int rank) {
  no_longer(rank);
}

void StackTraces::wait_only_for(const std::vector<int>& ranks) {
  const std::set<int> left(ranks.begin(), ranks.end());
  for (const int rank : std::set<int>(waiting_)) {
    if (!left.contains(rank)) no_longer(rank);
  }
}

void StackTraces::wait_for(Phase phase, std::set<int> ranks) {
  phase_ = phase;
  waiting_ = std::move(ranks);
  if (waiting_.empty()) return next_phase();
  if (phase == Phase::kNative) {
    limit_.expires_after(kNativeLimit);
  } else {
    limit_.expires_after(kPythonLimit);
  }
  limit_.async_wait([this, phase](boost::system::error_code error) {
    if (!error && phase_ == phase) next_phase();
  });
}

void StackTraces::no_longer(int rank) {
  if (waiting_.erase(rank) != 0 && waiting_.empty()) next_phase();
}

void StackTraces::next_phase() {
  limit_.cancel();
  std::set<int> python;
  if (phase_ == Phase::kNative) {
    python = waiting_;  // their agent has not answered yet, and may have begun with Python's stacks all the same
    for (const auto& [rank, trace] : traces_) {
      if (trace.python) python.insert(rank);
    }
  }
  if (!python.empty()) {
    hooks_.before_python();
    hooks_.send(ToAgent::kDumpPython);
    return wait_for(Phase::kPython, std::move(python));
  }
  phase_ = Phase::kDone;
  hooks_.done();
}

std::string StackTraces::report(const Allocation& allocation, Errors& errors) const {
  std::vector<RankStack> stacks;
  for (const auto& [rank, trace] : traces_) {
    RankStack& stack = stacks.emplace_back();
    stack.rank = rank;
    stack.native = native_frames(trace.native);
    stack.missing = trace.missing;
    auto [rest, frames] = take_python_frames(errors[rank]);
    stack.python = std::move(frames);
    if (trace.python && stack.python.empty()) stack.missing_python = "its program has printed none in time";
    if (stack.missing.empty()) stack.missing = "the tool's output has none of the main thread";
    errors[rank] = std::move(rest);
  }
  return stack_report(allocation, stacks);
}

}  // namespace runjob
