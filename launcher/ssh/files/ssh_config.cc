#include "launcher/ssh/files/ssh_config.hpp"

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/parse.hpp"
#include "launcher/ssh/files/ssh_text.hpp"

namespace runjob {
namespace {

constexpr int kDeepestInclude = 16;  // as in ssh
constexpr std::size_t kMostIncluded = 1000;

[[noreturn]] void refuse(std::string_view place, std::string_view problem) {
  throw Error(Errc::kUsage, fmt::format("{}: {}", place, problem));
}

/// Splits a line into words as ssh does: blanks between them, one '=' after the first, quotes of both kinds, a
/// backslash before a quote or itself, and nothing after a word that begins with '#'.
class WordReader {
 public:
  WordReader(std::string_view line, std::string_view place) : rest_(line), place_(place) {}

  std::vector<std::string> read() {
    std::vector<std::string> words;
    for (;;) {
      skip_blanks();
      if (words.size() == 1 && !rest_.empty() && rest_.front() == '=') {
        rest_.remove_prefix(1);
        skip_blanks();
      }
      if (rest_.empty() || rest_.front() == '#') return words;
      words.push_back(word(words.empty()));
    }
  }

 private:
  static bool is_blank(char c) { return c == ' ' || c == '\t' || c == '\r' || c == '\f'; }

  void skip_blanks() {
    while (!rest_.empty() && is_blank(rest_.front())) rest_.remove_prefix(1);
  }

  char take() {
    const char c = rest_.front();
    rest_.remove_prefix(1);
    return c;
  }

  bool escapes_next() const {
    return rest_.size() >= 2 && rest_[0] == '\\' && (rest_[1] == '"' || rest_[1] == '\'' || rest_[1] == '\\');
  }

  std::string word(bool is_keyword) {
    std::string result;
    char quote = 0;
    while (!rest_.empty()) {
      if (escapes_next())
        rest_.remove_prefix(1);
      else if (quote != 0 ? rest_.front() == quote : rest_.front() == '"' || rest_.front() == '\'') {
        quote = quote == 0 ? rest_.front() : '\0';
        rest_.remove_prefix(1);
        continue;
      } else if (quote == 0 && (is_blank(rest_.front()) || (is_keyword && rest_.front() == '='))) {
        break;
      }
      result += take();
    }
    if (quote != 0) refuse(place_, fmt::format("a quote ({}) has no end", quote));
    return result;
  }

  std::string_view rest_;
  std::string_view place_;
};

class Parser {
 public:
  explicit Parser(const IncludeReader& include) : include_(include) {}

  std::vector<SshDirective> parse(const SshConfigText& file, int depth) {
    std::vector<SshDirective> directives;
    std::string_view text = file.text;
    for (int number = 1; !text.empty(); ++number) {
      const std::size_t end = text.find('\n');
      const std::string place = fmt::format("{} line {}", file.source, number);
      std::vector<std::string> words = WordReader(text.substr(0, end), place).read();
      text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
      if (words.empty()) continue;
      if (words.size() == 1) refuse(place, fmt::format("{} has no argument", words.front()));
      SshDirective& directive = directives.emplace_back();
      directive.keyword = lower_case(words.front());
      directive.arguments.assign(words.begin() + 1, words.end());
      directive.place = place;
      if (directive.keyword == "include") read_included(directive, depth + 1);
    }
    return directives;
  }

 private:
  void read_included(SshDirective& directive, int depth) {
    if (depth > kDeepestInclude) refuse(directive.place, fmt::format("Include is more than {} deep", kDeepestInclude));
    for (const std::string& pattern : directive.arguments) {
      for (const SshConfigText& file : include_(pattern)) {
        if (++included_ > kMostIncluded)
          refuse(directive.place, fmt::format("more than {} files are included", kMostIncluded));
        std::vector<SshDirective> lines = parse(file, depth);
        std::move(lines.begin(), lines.end(), std::back_inserter(directive.included));
      }
    }
  }

  const IncludeReader& include_;
  std::size_t included_ = 0;
};

bool read_switch(const SshDirective& directive) {
  const std::string value = lower_case(directive.arguments.front());
  if (value == "yes" || value == "true") return true;
  if (value == "no" || value == "false") return false;
  refuse(directive.place,
         fmt::format("{} is neither yes nor no: '{}'", directive.keyword, directive.arguments.front()));
}

/// Collects what applies to one host.
class Evaluation {
 public:
  explicit Evaluation(std::string_view host) : host_(host) {}

  void apply_file(const std::vector<SshDirective>& directives) { apply(directives, true); }
  SshHostConfig take() { return std::move(config_); }

 private:
  /// `may_match`: a Host line inside of what a block includes that does not apply itself never does.
  void apply(const std::vector<SshDirective>& directives, bool may_match) {
    bool active = may_match;
    for (const SshDirective& directive : directives) {
      if (directive.keyword == "host") {
        active = may_match && is_for_host(directive);
      } else if (directive.keyword == "match") {
        const bool is_for_all = directive.arguments.size() == 1 && lower_case(directive.arguments.front()) == "all";
        if (may_match && !is_for_all) need_program("Match", directive);
        active = may_match && is_for_all;
      } else if (directive.keyword == "include") {
        apply(directive.included, active);
      } else if (active) {
        apply_one(directive);
      }
    }
  }

  bool is_for_host(const SshDirective& directive) const {
    return matches_patterns(host_, {directive.arguments.begin(), directive.arguments.end()});
  }

  void apply_one(const SshDirective& directive) {
    const std::string& keyword = directive.keyword;
    const std::string& value = directive.arguments.front();
    const auto first = [](auto& field, auto text) {
      if (!field) field = std::move(text);
    };
    if (keyword == "hostname") return first(config_.host_name, value);
    if (keyword == "user") return first(config_.user, value);
    if (keyword == "port") {
      return first(config_.port, static_cast<int>(parse_integer(value, directive.place + ": Port", 1, 65'535)));
    }
    if (keyword == "identityfile") return add_identity(value);
    if (keyword == "identitiesonly") return first(config_.identities_only, read_switch(directive));
    if (keyword == "identityagent") return first(config_.identity_agent, value);
    if (keyword == "hostkeyalias") return first(config_.host_key_alias, value);
    if (keyword == "userknownhostsfile") return first(config_.user_known_hosts, directive.arguments);
    if (keyword == "globalknownhostsfile") return first(config_.global_known_hosts, directive.arguments);
    if (keyword == "stricthostkeychecking") return first(config_.strict_host_key_checking, lower_case(value));
    if (keyword == "hashknownhosts") return first(config_.hash_known_hosts, read_switch(directive));
    if (keyword == "gssapiauthentication") return first(config_.gssapi_authentication, read_switch(directive));
    if (keyword == "hostbasedauthentication") return first(config_.host_based_authentication, read_switch(directive));
    look_for_more(directive);
  }

  void add_identity(const std::string& value) {
    auto& files = config_.identity_files;
    if (std::find(files.begin(), files.end(), value) == files.end()) files.push_back(value);
  }

  /// Keywords that change the connection or its other end, and that libssh2 does not support. A later value cannot
  /// switch on a keyword that is switched off.
  void look_for_more(const SshDirective& directive) {
    struct Keyword {
      std::string_view name;      // as in the manual
      std::string_view harmless;  // the value with which it asks for nothing
    };
    static constexpr std::array<Keyword, 21> kKeywords = {{{"ProxyJump", "none"},
                                                           {"ProxyCommand", "none"},
                                                           {"CanonicalizeHostname", "no"},
                                                           {"CertificateFile", "none"},
                                                           {"PKCS11Provider", "none"},
                                                           {"KnownHostsCommand", "none"},
                                                           {"RevokedHostKeys", "none"},
                                                           {"VerifyHostKeyDNS", "no"},
                                                           {"PubkeyAuthentication", "yes"},
                                                           {"AddressFamily", "any"},
                                                           {"BindAddress", ""},
                                                           {"BindInterface", ""},
                                                           {"Ciphers", ""},
                                                           {"MACs", ""},
                                                           {"KexAlgorithms", ""},
                                                           {"HostKeyAlgorithms", ""},
                                                           {"CASignatureAlgorithms", ""},
                                                           {"PubkeyAcceptedAlgorithms", ""},
                                                           {"PubkeyAcceptedKeyTypes", ""},
                                                           {"PreferredAuthentications", "publickey"},
                                                           {"NoHostAuthenticationForLocalhost", "no"}}};
    for (const Keyword& keyword : kKeywords) {
      if (lower_case(keyword.name) != directive.keyword) continue;
      if (std::find(seen_.begin(), seen_.end(), keyword.name) != seen_.end()) return;
      seen_.push_back(keyword.name);
      if (lower_case(directive.arguments.front()) != keyword.harmless) need_program(keyword.name, directive);
    }
  }

  void need_program(std::string_view keyword, const SshDirective& directive) {
    if (config_.needs_program.empty()) config_.needs_program = fmt::format("{} ({})", keyword, directive.place);
  }

  std::string host_;
  SshHostConfig config_;
  std::vector<std::string_view> seen_;  // of the keywords of look_for_more()
};

}  // namespace

std::vector<SshDirective> parse_ssh_config(const SshConfigText& file, const IncludeReader& include) {
  return Parser(include).parse(file, 0);
}

SshHostConfig config_of_host(const std::vector<std::vector<SshDirective>>& files, std::string_view host) {
  Evaluation evaluation(host);
  for (const std::vector<SshDirective>& file : files) evaluation.apply_file(file);
  return evaluation.take();
}

}  // namespace runjob
