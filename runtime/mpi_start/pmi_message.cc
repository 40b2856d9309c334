#include "runtime/mpi_start/pmi_message.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/screen_text.hpp"

namespace runjob::runtime {
namespace {

constexpr std::string_view kBlanks = " \t\r\n";

[[noreturn]] void refuse(std::string_view line) {
  constexpr std::size_t kMostShown = 200;
  throw Error(Errc::kProtocol, fmt::format("the MPI's launcher sent what is no message of PMI: '{}'",
                                           one_line(line.substr(0, kMostShown))));
}

std::vector<std::string_view> words_of(std::string_view line) {
  std::vector<std::string_view> words;
  for (std::size_t at = line.find_first_not_of(kBlanks); at != line.npos; at = line.find_first_not_of(kBlanks, at)) {
    const std::size_t end = std::min(line.find_first_of(kBlanks, at), line.size());
    words.push_back(line.substr(at, end - at));
    at = end;
  }
  return words;
}

}  // namespace

std::string PmiMessage::value(std::string_view name) const {
  const auto found = std::find_if(values.begin(), values.end(), [&](const auto& entry) { return entry.first == name; });
  return found == values.end() ? "" : found->second;
}

std::string to_text(const PmiMessage& message) {
  std::string line = "cmd=" + message.command;
  for (const auto& [name, value] : message.values) line += fmt::format(" {}={}", name, value);
  return line;
}

PmiMessage parse_pmi_message(std::string_view line) {
  PmiMessage message;
  for (const std::string_view word : words_of(line)) {
    const std::size_t equals = word.find('=');
    if (message.command.empty()) {
      if (!word.starts_with("cmd=") || word.size() == equals + 1) refuse(line);
      message.command = word.substr(equals + 1);
    } else if (equals == word.npos) {
      if (message.values.empty()) refuse(line);
      message.values.back().second += fmt::format(" {}", word);
    } else {
      const std::string name(word.substr(0, equals));
      const bool is_twice = std::any_of(message.values.begin(), message.values.end(),
                                        [&](const auto& entry) { return entry.first == name; });
      if (name.empty() || name == "cmd" || is_twice) refuse(line);
      message.values.emplace_back(name, word.substr(equals + 1));
    }
  }
  if (message.command.empty()) refuse(line);
  return message;
}

}  // namespace runjob::runtime
