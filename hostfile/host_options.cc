#include "hostfile/host_options.hpp"

#include <algorithm>
#include <set>

#include <fmt/format.h>

#include "base/edit_distance.hpp"
#include "hostfile/merge_hosts.hpp"

namespace runjob {
namespace {

constexpr int kMaxGpu = 1023;
constexpr std::string_view kKnown = "slots, user, port, identity, gpus or max_slots";

bool is_blank(char c) {
  return c == ' ' || c == '\t';
}

std::string take_user_value(TextCursor& cursor) {
  const std::size_t start = cursor.position();
  const std::string user(cursor.take_while([](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           std::string_view("._-$+").find(c) != std::string_view::npos;
  }));
  if (user.empty()) cursor.expected("a user name after 'user='");
  if (user.front() == '-') cursor.fail_at(start, "expected a user name that does not start with '-'");
  return user;
}

std::string take_identity(TextCursor& cursor) {
  std::string path;
  if (cursor.accept('"')) {
    path = cursor.take_while([](char c) { return c != '"'; });
    if (!cursor.accept('"')) cursor.expected("'\"' at the end of the path");
  } else {
    path = cursor.take_while([](char c) { return !is_blank(c) && c != '#' && c != '"'; });
  }
  if (path.empty()) cursor.expected("the path of an SSH identity file after 'identity='");
  return path;
}

std::vector<int> take_gpus(TextCursor& cursor) {
  std::vector<int> gpus;
  std::set<int> seen;
  do {
    const std::size_t start = cursor.position();
    const int low = cursor.take_number("a GPU number", 0, kMaxGpu);
    const int high = cursor.accept('-') ? cursor.take_number("a GPU number", 0, kMaxGpu) : low;
    if (high < low) cursor.fail_at(start, fmt::format("expected a range from low to high, found {}-{}", low, high));
    for (int gpu = low; gpu <= high; ++gpu) {
      if (!seen.insert(gpu).second) cursor.fail_at(start, fmt::format("expected each GPU once, found {} again", gpu));
      gpus.push_back(gpu);
    }
  } while (cursor.accept(','));
  return gpus;
}

/// The state of reading one line: the values so far, max_slots, and the options that were given.
class OptionReader {
 public:
  OptionReader(TextCursor& cursor, HostOptions& options) : cursor_(cursor), options_(options) {
    if (options.slots) given_.insert("slots");
    if (!options.user.empty()) given_.insert("user");
  }

  void take_all() {
    for (;;) {
      if (!cursor_.at_end() && !is_blank(cursor_.peek()) && cursor_.peek() != '#')
        cursor_.expected("a space, then an option such as slots=4, or the end of the line");
      cursor_.skip_blanks();
      if (cursor_.at_end() || cursor_.peek() == '#') break;
      take_one();
    }
    if (max_slots_ && *max_slots_ < options_.slots.value_or(1))
      cursor_.fail_at(max_slots_position_, fmt::format("expected max_slots of at least {}, the host's slots, found {}",
                                                       options_.slots.value_or(1), *max_slots_));
  }

 private:
  void take_one() {
    const std::size_t start = cursor_.position();
    const std::string name = take_name();
    cursor_.skip_blanks();
    if (!cursor_.accept('=')) cursor_.expected(fmt::format("'=' after '{}'", name));
    cursor_.skip_blanks();
    if (!given_.insert(name).second)
      cursor_.fail_at(start, fmt::format("expected each option once, found '{}' again", name));
    if (!take_value(name)) refuse_name(name, start);
  }

  std::string take_name() {
    std::string name(cursor_.take_while(
        [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || c == '-'; }));
    if (name.empty()) cursor_.expected("an option such as slots=4, or the end of the line");
    return name == "max-slots" ? "max_slots" : name;
  }

  bool take_value(const std::string& name) {
    if (name == "slots") {
      options_.slots = cursor_.take_number("a number of slots", 1, kMaxSlots);
    } else if (name == "max_slots") {
      max_slots_position_ = cursor_.position();
      max_slots_ = cursor_.take_number("a number of slots", 1, kMaxSlots);
    } else if (name == "port") {
      options_.port = cursor_.take_number("a port", 1, 65'535);
    } else if (name == "user") {
      options_.user = take_user_value(cursor_);
    } else if (name == "identity") {
      options_.identity = take_identity(cursor_);
    } else if (name == "gpus") {
      options_.gpus = take_gpus(cursor_);
    } else {
      return false;
    }
    return true;
  }

  [[noreturn]] void refuse_name(const std::string& name, std::size_t start) const {
    const std::string meant = nearest(name, {"slots", "user", "port", "identity", "gpus", "max_slots"});
    const std::string hint = meant.empty() ? "" : fmt::format("; did you mean '{}'?", meant);
    cursor_.fail_at(start, fmt::format("expected {}, found {}{}", kKnown, show_text(name), hint));
  }

  TextCursor& cursor_;
  HostOptions& options_;
  std::set<std::string> given_;
  std::optional<int> max_slots_;
  std::size_t max_slots_position_ = 0;
};

}  // namespace

void take_host_options(TextCursor& cursor, HostOptions& options) {
  OptionReader(cursor, options).take_all();
}

}  // namespace runjob
