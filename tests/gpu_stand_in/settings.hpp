#pragma once

#include <atomic>
#include <cstdlib>
#include <map>
#include <mutex>
#include <string>

/// What the environment asks the stand-ins to do.
namespace stand_in {

inline int number(const char* name, int usual) {
  const char* const text = std::getenv(name);
  return text == nullptr || *text == '\0' ? usual : std::atoi(text);
}

inline std::string text(const char* name, const char* usual) {
  const char* const text = std::getenv(name);
  return text == nullptr || *text == '\0' ? usual : text;
}

/// The calls that a list such as `ncclAllReduce:3,event_record:1` names.
class CallList {
 public:
  explicit CallList(const char* variable) {
    const char* const text = std::getenv(variable);
    std::string rest = text == nullptr ? "" : text;
    while (!rest.empty()) {
      const std::size_t comma = rest.find(',');
      const std::string item = rest.substr(0, comma);
      const std::size_t colon = item.find(':');
      wanted_[item.substr(0, colon)] = colon == item.npos ? 1 : std::atoi(item.c_str() + colon + 1);
      rest = comma == rest.npos ? "" : rest.substr(comma + 1);
    }
  }

  /// Counts a call of `function`, if the list has it; true if it is the one of the list.
  bool matches(const char* function) {
    if (wanted_.empty()) return false;
    const std::lock_guard lock(mutex_);
    const auto found = wanted_.find(function);
    return found != wanted_.end() && ++counts_[function] == found->second;
  }
  /// The calls of a function of the list so far.
  int count(const std::string& function) {
    const std::lock_guard lock(mutex_);
    return counts_[function];
  }

 private:
  std::mutex mutex_;
  std::map<std::string, int> wanted_, counts_;
};

}  // namespace stand_in
