#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace runjob {

/// Where --help shows an option.
enum class OptionGroup {
  kRanks,
  kPlacement,
  kSsh,
  kOutput,
  kEnd,
  kElastic,
  kCollectives,
  kConfiguration,
  kHorovodrun,  ///< nowhere: it exists for compatibility with horovodrun
  kMpirun,      ///< nowhere: it exists for compatibility with mpirun and mpiexec
  kInternal,    ///< nowhere: programs of ours use it
};

/// One option: everything that the command line, the environment, config files, --help and --print-config need
/// to know about it. Adding an option is adding a row here and reading its value in build_job_spec.cc, or
/// in runtime_variables.cc when the runtime needs it.
struct Option {
  std::string_view name;                           ///< without dashes: --NAME, and its key in config files
  std::vector<std::string_view> short_names = {};  ///< other spellings, with their single dash: "-np", "-n"
  std::string_view value = {};                     ///< the name of its value in the help; "" for a flag
  std::vector<std::string_view> variables = {};    ///< environment variables, the first one set wins
  std::string_view horovodrun_key = {};            ///< its key in horovodrun's config files, or ""
  std::string_view default_text = {};              ///< the default, as text; "" for none
  std::string_view help;
  bool is_action = false;   ///< does something else than start a job; on the command line only
  bool repeatable = false;  ///< every occurrence counts, not only the last
  /// for a repeatable option: the values of all sources count, not only those of the strongest one
  bool adds_up = false;
  OptionGroup group = OptionGroup::kRanks;
  int values = 1;  ///< how many words follow it on the command line; one setting with blanks between them
  std::string_view implied = {};  ///< its value when it is given without one; then a value follows '=' only
  // horovodrun_options.hpp, mpirun_options.hpp
  std::vector<std::string_view> foreign_names = {};  ///< other spellings, with their dashes, that --help does not show
  std::string_view no_effect = {};                   ///< the reason why it does nothing
  void (*check)(std::string_view value, std::string_view place) = nullptr;  ///< of such a value; throws kUsage
  std::string_view stands_for = {};                                         ///< the option whose value it gives
  /// Translates its value into one of `stands_for`. Without it, this flag is the other one's `=false`.
  std::string (*translate)(const std::string& value) = nullptr;

  /// True if the option exists only for compatibility with another launcher.
  bool is_foreign() const { return group == OptionGroup::kHorovodrun || group == OptionGroup::kMpirun; }
  bool is_in_help() const { return !is_foreign() && group != OptionGroup::kInternal; }
};

/// In the order of --help within each group.
const std::vector<Option>& option_table();

/// The option called `name`, or nullptr.
const Option* find_option(std::string_view name);

}  // namespace runjob
