#include "launcher/supervision/stack_report.hpp"

#include <algorithm>
#include <span>

#include <fmt/format.h>

#include "hostfile/rank_list.hpp"

namespace runjob {
namespace {

constexpr std::size_t kShownFrames = 20;
constexpr std::size_t kShownNativeFrames = 8;  // below a Python stack, which is more useful

/// The next line of `text`, which loses it.
std::string_view take_line(std::string_view& text) {
  const std::size_t end = text.find('\n');
  const std::string_view line = text.substr(0, end);
  text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  return line;
}

/// "#3  0x00007f12 in name (args) at file:4" (gdb), "#3  0x00007f12 name" (eu-stack): the name; "" for other lines.
std::string frame_name(std::string_view line) {
  if (line.empty() || line.front() != '#') return "";
  line.remove_prefix(std::min(line.find(' '), line.size()));
  line.remove_prefix(std::min(line.find_first_not_of(' '), line.size()));
  if (line.starts_with("0x")) line.remove_prefix(std::min(line.find(' ') + 1, line.size()));
  if (line.starts_with("in ")) line.remove_prefix(3);
  int depth = 0;  // of template arguments, which may have parentheses
  for (std::size_t i = 0; i < line.size(); ++i) {
    if (line[i] == '<') ++depth;
    if (line[i] == '>') --depth;
    if (depth == 0 && line.substr(i).starts_with(" (")) return std::string(line.substr(0, i));
  }
  return std::string(line);
}

/// A group of ranks with one stack.
struct Group {
  const RankStack* stack;
  std::vector<int> ranks;
};

bool alike(const RankStack& a, const RankStack& b) {
  if (!a.python.empty() || !b.python.empty()) return a.python == b.python;
  return a.native == b.native && a.missing == b.missing && a.missing_python == b.missing_python;
}

std::vector<Group> group(const std::vector<RankStack>& stacks) {
  std::vector<Group> groups;
  for (const RankStack& stack : stacks) {
    const auto same =
        std::find_if(groups.begin(), groups.end(), [&](const Group& g) { return alike(*g.stack, stack); });
    if (same == groups.end()) {
      groups.push_back({&stack, {stack.rank}});
    } else {
      same->ranks.push_back(stack.rank);
    }
  }
  std::stable_sort(groups.begin(), groups.end(),
                   [](const Group& a, const Group& b) { return a.ranks.size() > b.ranks.size(); });
  return groups;
}

std::string frames_text(std::string_view title, std::span<const std::string> frames, std::size_t most) {
  if (frames.empty()) return "";
  std::string text = fmt::format("    {}, innermost first:\n", title);
  for (const std::string& frame : frames.first(std::min(frames.size(), most))) text += fmt::format("      {}\n", frame);
  if (frames.size() > most) text += fmt::format("      ... and {} more\n", frames.size() - most);
  return text;
}

/// True for a frame in a file of an installed package, of Python itself, or in none: '  File "<frozen runpy>"'.
bool is_of_library(std::string_view frame) {
  for (const std::string_view part :
       {"/site-packages/", "/dist-packages/", "/lib/python", "/lib64/python", "File \"<"}) {
    if (frame.find(part) != std::string_view::npos) return true;
  }
  return false;
}

/// The frames from the first one of the user's program on, and then the frames of libraries that it has called.
std::string python_text(std::span<const std::string> frames) {
  const auto user = std::find_if_not(frames.begin(), frames.end(), is_of_library);
  const auto inner = user == frames.end() ? 0 : static_cast<std::size_t>(user - frames.begin());
  return frames_text("Python", frames.subspan(inner), kShownFrames) +
         frames_text("in libraries called from there", frames.first(inner), kShownFrames);
}

std::string hosts_of(const Allocation& allocation, const std::vector<int>& ranks) {
  const auto host_of = [&](int rank) { return allocation.placements.at(static_cast<std::size_t>(rank)).host; };
  const int first = host_of(ranks.front());
  const bool one = std::all_of(ranks.begin(), ranks.end(), [&](int rank) { return host_of(rank) == first; });
  return one ? fmt::format(" on {}", allocation.hosts.at(static_cast<std::size_t>(first)).name) : "";
}

}  // namespace

std::vector<std::string> native_frames(std::string_view text) {
  std::vector<std::string> frames;
  bool in_main = false;
  bool any_thread = false;
  while (!text.empty()) {
    const std::string_view line = take_line(text);
    if (line.starts_with("TID ")) {  // eu-stack: the main thread comes first
      in_main = !any_thread;
      any_thread = true;
    } else if (line.starts_with("Thread ")) {  // gdb: the main thread is number 1
      in_main = line.starts_with("Thread 1 ");
    } else if (std::string name = frame_name(line); in_main && !name.empty()) {
      frames.push_back(std::move(name));
    }
  }
  return frames;
}

std::pair<std::string, std::vector<std::string>> take_python_frames(std::string_view text) {
  constexpr std::string_view kBegin = "Fatal Python error: Aborted";
  const std::size_t begin = text.rfind(kBegin);
  if (begin == std::string_view::npos) return {std::string(text), {}};
  std::pair<std::string, std::vector<std::string>> result{std::string(text.substr(0, begin)), {}};
  std::string_view dump = text.substr(begin);
  bool in_thread = false, had_current = false;
  while (!dump.empty()) {
    std::string_view line = take_line(dump);
    if (line.find(" (most recent call first)") != std::string_view::npos) {
      if (had_current) break;
      had_current = line.starts_with("Current thread ") || line.starts_with("Stack ");
      in_thread = true;
      result.second.clear();  // without a current thread it is the last one, which is the main thread
    } else if (in_thread && line.starts_with("  ")) {
      line.remove_prefix(2);
      result.second.emplace_back(line);
    } else {
      in_thread = false;
    }
  }
  return result;
}

std::string stack_report(const Allocation& allocation, const std::vector<RankStack>& stacks) {
  const std::vector<Group> groups = group(stacks);
  if (groups.empty()) return "";
  const bool majority = groups.size() > 1 && groups[0].ranks.size() > groups[1].ranks.size();
  std::string text =
      groups.size() == 1 ? "all ranks were at the same place:\n" : "the ranks were at different places:\n";
  for (const Group& each : groups) {
    const bool differs = majority && &each != &groups.front();
    text += fmt::format("  {}{}{}:\n", ranks_text(each.ranks), hosts_of(allocation, each.ranks),
                        differs ? (each.ranks.size() == 1 ? " differs" : " differ") : "");
    text += python_text(each.stack->python);
    if (!each.stack->missing_python.empty())
      text += fmt::format("    no Python stack: {}\n", each.stack->missing_python);
    text += frames_text("native", each.stack->native, each.stack->python.empty() ? kShownFrames : kShownNativeFrames);
    if (each.stack->native.empty()) text += fmt::format("    no native stack: {}\n", each.stack->missing);
  }
  text.pop_back();
  return text;
}

}  // namespace runjob
