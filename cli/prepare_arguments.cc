#include "cli/prepare_arguments.hpp"

#include <optional>
#include <string_view>

#include <fmt/format.h>

#include "base/edit_distance.hpp"
#include "base/error.hpp"
#include "cli/option_table.hpp"

namespace runjob {
namespace {

/// One word recognised as an option: which, how it was written, and the value in the same word.
struct Match {
  const Option* option = nullptr;
  std::string typed;
  std::optional<std::string> value;
};

std::vector<std::string> all_spellings() {
  std::vector<std::string> result;
  for (const Option& option : option_table()) {
    result.push_back(fmt::format("--{}", option.name));
    for (const std::string_view name : option.short_names) result.emplace_back(name);
  }
  return result;
}

[[noreturn]] void refuse_unknown(const std::string& typed) {
  const std::string meant = nearest(typed, all_spellings());
  throw Error(Errc::kUsage,
              fmt::format("unknown option {}; {}", typed,
                          meant.empty() ? "runjob --help lists all options" : fmt::format("did you mean {}?", meant)));
}

const Option* match_long(const std::string& typed) {
  const std::string_view name = std::string_view(typed).substr(2);
  std::vector<const Option*> candidates;
  std::vector<const Option*> foreign;
  for (const Option& option : option_table()) {
    if (option.name == name) return &option;
    const bool begins_so = !name.empty() && option.name.substr(0, name.size()) == name;
    if (begins_so) (option.is_foreign() ? foreign : candidates).push_back(&option);
  }
  if (candidates.empty()) candidates = foreign;  // those that do something come first
  if (candidates.empty()) refuse_unknown(typed);
  if (candidates.size() == 1) return candidates.front();
  std::string list;
  for (const Option* option : candidates) list += fmt::format("{}--{}", list.empty() ? "" : " or ", option->name);
  throw Error(Errc::kUsage, fmt::format("option {} is ambiguous; write {}", typed, list));
}

const Option* match_short(std::string_view typed) {
  for (const Option& option : option_table()) {
    for (const std::string_view name : option.short_names) {
      if (name == typed) return &option;
    }
  }
  return nullptr;
}

/// `-n2`, `-Hlocalhost`: a one-letter option with its value in the same word.
std::optional<Match> match_glued(const std::string& word) {
  const Option* option = match_short(word.substr(0, 2));
  if (option == nullptr || option->value.empty()) return std::nullopt;
  return Match{option, word.substr(0, 2), word.substr(2)};
}

Match match_option(const std::string& word) {
  const std::size_t equals = word.find('=');
  Match match;
  match.typed = word.substr(0, equals);
  if (equals != std::string::npos) match.value = word.substr(equals + 1);
  if (word.substr(0, 2) == "--") {
    match.option = match_long(match.typed);
    return match;
  }
  match.option = match_short(match.typed);
  if (match.option != nullptr) return match;
  // "-hosts a:1" is a mistyped --hosts, not the flag -h or a glued value.
  const bool is_long_with_one_dash = find_option(std::string_view(match.typed).substr(1)) != nullptr;
  if (is_long_with_one_dash)
    throw Error(Errc::kUsage, fmt::format("unknown option {0}; did you mean -{0}?", match.typed));
  if (const auto glued = match_glued(word)) return *glued;
  refuse_unknown(match.typed);
}

}  // namespace

PreparedArguments prepare_arguments(const std::vector<std::string>& arguments) {
  PreparedArguments prepared;
  auto word = arguments.begin();
  for (; word != arguments.end(); ++word) {
    if (*word == "--") {
      ++word;
      break;
    }
    if (word->size() < 2 || word->front() != '-') break;
    Match match = match_option(*word);
    if (!match.option->stands_for.empty()) {
      match.option = find_option(match.option->stands_for);
      match.value = match.value == "false" ? "true" : "false";
    }
    const std::string name(match.option->name);
    prepared.typed[name] = match.typed;
    if (match.option->value.empty()) {
      prepared.options.push_back("--" + name + (match.value ? "=" + *match.value : ""));
      continue;
    }
    if (!match.value && !match.option->implied.empty()) match.value = match.option->implied;
    if (!match.value) {
      if (++word == arguments.end())
        throw Error(Errc::kUsage,
                    fmt::format("option {} needs a value: {} {}", match.typed, match.typed, match.option->value));
      match.value = *word;
      for (int i = 1; i < match.option->values; ++i) {
        if (++word == arguments.end())
          throw Error(Errc::kUsage, fmt::format("option {} needs {} values: {} {}", match.typed, match.option->values,
                                                match.typed, match.option->value));
        *match.value += " " + *word;
      }
    }
    prepared.options.push_back("--" + name);
    prepared.options.push_back(*match.value);
  }
  prepared.command.assign(word, arguments.end());
  return prepared;
}

}  // namespace runjob
