#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace runjob {

/// Where --help shows an option.
enum class OptionGroup { kRanks, kPlacement, kSsh, kOutput, kEnd, kCollectives, kConfiguration, kHorovodrun };

/// One option: everything that the command line, the environment, config files, --help and --print-config need
/// to know about it. Adding an option is adding a row here and reading its value in build_job_spec.cc.
struct Option {
  std::string_view name;                      ///< without dashes: --NAME, and its key in config files
  std::vector<std::string_view> short_names;  ///< other spellings, with their single dash: "-np", "-n"
  std::string_view value;                     ///< how help names its value; "" for a flag
  std::vector<std::string_view> variables;    ///< environment variables, the first one set wins
  std::string_view horovodrun_key;            ///< its key in horovodrun's config files, or ""
  std::string_view default_text;              ///< what holds when nothing is given
  std::string_view help;
  bool is_action = false;   ///< does something else than start a job; on the command line only
  bool repeatable = false;  ///< every occurrence counts, not only the last
  bool adds_up = false;     ///< of a repeatable one: the values of all sources count, not only the strongest one's
  OptionGroup group = OptionGroup::kRanks;
  int values = 1;  ///< how many words follow it on the command line; one setting with blanks between them
  std::string_view implied = {};  ///< its value when it is given without one; then a value follows '=' only
  // horovodrun_options.hpp
  std::string_view no_effect = {};   ///< why it does nothing
  bool refused = false;              ///< and is an error for that
  std::string_view stands_for = {};  ///< this flag is that one's `=false`

  /// Whether it is here only for those who know horovodrun.
  bool is_foreign() const { return group == OptionGroup::kHorovodrun; }
};

/// In the order of --help within each group.
const std::vector<Option>& option_table();

/// The option called `name`, or nullptr.
const Option* find_option(std::string_view name);

}  // namespace runjob
