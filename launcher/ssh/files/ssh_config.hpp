#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace runjob {

/// One line of a configuration file of ssh: `Keyword argument argument`.
struct SshDirective {
  std::string keyword;  ///< in small letters
  std::vector<std::string> arguments;
  std::string place;                   ///< "FILE line N"
  std::vector<SshDirective> included;  ///< of an Include: the lines of the files that it names, in their order
};

/// A file's text with its name.
struct SshConfigText {
  std::string text;
  std::string source;
};

/// Finds the files that an Include of `pattern` means.
using IncludeReader = std::function<std::vector<SshConfigText>(const std::string& pattern)>;

/// Reads the text of ssh_config(5). Pure but for `include`; safe on any bytes.
/// Errors  Error(kUsage) naming file and line: a quote without its end, a keyword without an argument, Includes more
///         than 16 deep or of more than 1000 files in all.
std::vector<SshDirective> parse_ssh_config(const SshConfigText& file, const IncludeReader& include);

/// The configuration of one host. The first value of a keyword counts; of IdentityFile, all values count.
struct SshHostConfig {
  std::optional<std::string> host_name;
  std::optional<std::string> user;
  std::optional<int> port;
  std::vector<std::string> identity_files;
  std::optional<bool> identities_only;
  std::optional<std::string> identity_agent;
  std::optional<std::string> host_key_alias;
  std::optional<std::vector<std::string>> user_known_hosts;
  std::optional<std::vector<std::string>> global_known_hosts;
  std::optional<std::string> strict_host_key_checking;  ///< in small letters
  std::optional<bool> hash_known_hosts;
  std::optional<bool> gssapi_authentication;
  std::optional<bool> host_based_authentication;
  std::string
      needs_program;  ///< what only ssh itself can do, with its place: "ProxyJump (~/.ssh/config line 3)", or ""
};

/// Evaluates the lines of several files in their order for `host`, the name as the user gave it.
/// Errors  Error(kUsage) naming file and line: a port that is none, a switch that is neither yes nor no.
SshHostConfig config_of_host(const std::vector<std::vector<SshDirective>>& files, std::string_view host);

}  // namespace runjob
