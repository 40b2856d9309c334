#include "cli/options/prepare_arguments.hpp"

#include <algorithm>
#include <cctype>
#include <optional>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "base/edit_distance.hpp"
#include "base/error.hpp"
#include "base/parse.hpp"
#include "cli/options/exclusive_options.hpp"
#include "cli/options/horovodrun_options.hpp"
#include "cli/options/option_table.hpp"
#include "cli/options/torchrun_options.hpp"

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
    for (const std::string_view name : option.foreign_names) result.emplace_back(name);
  }
  for (std::string& spelling : torchrun_spellings()) result.push_back(std::move(spelling));
  return result;
}

[[noreturn]] void refuse_unknown(const std::string& typed) {
  if (const std::string hint = torchrun_hint(typed); !hint.empty()) throw Error(Errc::kUsage, hint);
  const std::string meant = nearest(typed, all_spellings());
  if (const std::string hint = torchrun_hint(meant); !hint.empty())
    throw Error(Errc::kUsage, fmt::format("unknown option {}; {}", typed, hint));
  throw Error(Errc::kUsage,
              fmt::format("unknown option {}; {}", typed,
                          meant.empty() ? "runjob --help lists all options" : fmt::format("did you mean {}?", meant)));
}

const Option* match_spelling(std::string_view typed) {
  const auto has = [typed](const std::vector<std::string_view>& names) {
    return std::find(names.begin(), names.end(), typed) != names.end();
  };
  for (const Option& option : option_table()) {
    if (has(option.short_names) || has(option.foreign_names)) return &option;
  }
  return nullptr;
}

/// The option that horovodrun would take a long option for; nullptr if there is none, or several.
const Option* match_as_horovodrun(std::string_view name) {
  const Option* match = nullptr;
  for (const Option& option : option_table()) {
    if (!horovodrun_has(option) || !option.name.starts_with(name)) continue;
    if (option.name == name) return &option;
    if (match != nullptr) return nullptr;
    match = &option;
  }
  return match;
}

const Option* match_long(const std::string& typed, bool as_horovodrun) {
  const std::string_view name = std::string_view(typed).substr(2);
  if (as_horovodrun && !name.empty()) {
    if (const Option* option = match_as_horovodrun(name)) return option;
  }
  if (const Option* option = match_spelling(typed)) return option;
  std::vector<const Option*> candidates;
  std::vector<const Option*> foreign;
  for (const Option& option : option_table()) {
    if (option.name == name) return &option;
    if (!name.empty() && option.name.starts_with(name)) (option.is_foreign() ? foreign : candidates).push_back(&option);
  }
  if (candidates.empty()) candidates = foreign;  // those that do something come first
  if (candidates.empty()) refuse_unknown(typed);
  if (candidates.size() == 1) return candidates.front();
  std::string list;
  for (const Option* option : candidates) list += fmt::format("{}--{}", list.empty() ? "" : " or ", option->name);
  throw Error(Errc::kUsage, fmt::format("option {} is ambiguous; write {}", typed, list));
}

/// True if `word` with small letters is an option: "-Hostfile" is a mistyped one, and not `-H ostfile`.
bool is_option_in_capitals(std::string word) {
  std::transform(word.begin(), word.end(), word.begin(), [](unsigned char c) { return std::tolower(c); });
  return match_spelling(word) != nullptr;
}

/// `-n2`, `-Hlocalhost`: a one-letter option with its value in the same word. `-npernod` is not `-n pernod`.
std::optional<Match> match_glued(const std::string& word) {
  constexpr std::string_view kBeginsNumber = "+-0123456789";
  const Option* option = match_spelling(word.substr(0, 2));
  if (option == nullptr || option->value.empty()) return std::nullopt;
  const bool takes_number = option->value == "N" || option->value == "PORT";
  if (takes_number && kBeginsNumber.find(word[2]) == std::string_view::npos) return std::nullopt;
  if (is_option_in_capitals(word)) return std::nullopt;
  return Match{option, word.substr(0, 2), word.substr(2)};
}

Match match_option(const std::string& word, bool as_horovodrun) {
  const std::size_t equals = word.find('=');
  Match match;
  match.typed = word.substr(0, equals);
  if (equals != std::string::npos) match.value = word.substr(equals + 1);
  if (word.substr(0, 2) == "--") {
    match.option = match_long(match.typed, as_horovodrun);
    return match;
  }
  match.option = match_spelling(match.typed);
  if (match.option != nullptr) return match;
  // "-verbose" is a mistyped --verbose, not the flag -v or a glued value.
  const bool is_long_with_one_dash = find_option(std::string_view(match.typed).substr(1)) != nullptr;
  if (is_long_with_one_dash)
    throw Error(Errc::kUsage, fmt::format("unknown option {0}; did you mean -{0}?", match.typed));
  if (const auto glued = match_glued(word)) return *glued;
  refuse_unknown(match.typed);
}

using Word = std::vector<std::string>::const_iterator;

/// The value of `match` in the words after `word`, which becomes the last of them.
std::string take_value(const Match& match, Word& word, Word end) {
  const auto& [option, typed, ignored] = match;
  if (++word == end)
    throw Error(Errc::kUsage, fmt::format("option {} needs a value: {} {}", typed, typed, option->value));
  std::string value = *word;
  for (int i = 1; i < option->values; ++i) {
    if (++word == end)
      throw Error(Errc::kUsage,
                  fmt::format("option {} needs {} values: {} {}", typed, option->values, typed, option->value));
    value += " " + *word;
  }
  return value;
}

/// Makes it the option for which it stands, if it stands for one.
void translate(Match& match) {
  if (match.option->stands_for.empty()) return;
  if (match.option->translate != nullptr) {
    match.value = match.option->translate(*match.value);
  } else {
    match.value = !match.value || parse_bool(*match.value, match.typed) ? "false" : "true";
  }
  match.option = find_option(match.option->stands_for);
}

bool is_option(const std::string& word) {
  if (word.size() < 2 || word.front() != '-') return false;
  const std::vector<std::string> spellings = all_spellings();
  return match_glued(word) ||
         std::find(spellings.begin(), spellings.end(), word.substr(0, word.find('='))) != spellings.end();
}

/// mpirun takes several programs: `mpirun -np 1 a : -np 1 b`.
void refuse_second_program(const std::vector<std::string>& command) {
  for (std::size_t i = 1; i + 1 < command.size(); ++i) {
    if (command[i] != ":" || !is_option(command[i + 1])) continue;
    throw Error(Errc::kUsage,
                fmt::format("': {}' begins a second program, as for mpirun, and a job of runjob runs one; let that "
                            "program decide by RUNJOB_RANK what it does, or write -- before the command if ':' is an "
                            "argument of it",
                            command[i + 1]));
  }
}

}  // namespace

PreparedArguments prepare_arguments(const std::vector<std::string>& arguments, bool as_horovodrun) {
  PreparedArguments prepared;
  ExclusiveOptions exclusive;
  auto word = arguments.begin();
  bool is_literal = false;  // the command stands after "--"
  for (; word != arguments.end(); ++word) {
    if (word->size() < 2 || word->front() != '-') break;
    prepared.without_value.clear();
    if (*word == "--") {
      ++word;
      is_literal = true;
      break;
    }
    Match match = match_option(*word, as_horovodrun);
    if (!match.value && !match.option->implied.empty()) {
      match.value = match.option->implied;
      prepared.without_value = match.typed;
    }
    if (!match.value && !match.option->value.empty()) match.value = take_value(match, word, arguments.end());
    if (match.value != "false") exclusive.add(match.option->name, match.typed);
    translate(match);
    const std::string name(match.option->name);
    prepared.typed[name] = match.typed;
    if (match.option->value.empty()) {
      prepared.options.push_back("--" + name + (match.value ? "=" + *match.value : ""));
    } else {
      prepared.options.push_back("--" + name);
      prepared.options.push_back(*match.value);
    }
  }
  prepared.command.assign(word, arguments.end());
  if (!is_literal) refuse_second_program(prepared.command);
  return prepared;
}

}  // namespace runjob
