#include "launcher/ssh/files/ssh_target.hpp"

#include <array>
#include <functional>
#include <optional>

#include <fmt/format.h>

namespace runjob {
namespace {

constexpr int kDefaultPort = 22;

/// The replacement of a %-sign in the configuration's values; nullopt if only ssh knows it.
using Tokens = std::function<std::optional<std::string>(char token)>;

std::optional<std::string> expand(const std::string& text, const Tokens& tokens) {
  std::string result;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '$' && text.substr(i, 2) == "${") return std::nullopt;
    if (text[i] != '%') {
      result += text[i];
      continue;
    }
    if (++i == text.size()) return std::nullopt;
    const std::optional<std::string> value = text[i] == '%' ? "%" : tokens(text[i]);
    if (!value) return std::nullopt;
    result += *value;
  }
  return result;
}

class TargetBuilder {
 public:
  TargetBuilder(const Host& host, const SshOptions& options, const std::vector<std::vector<SshDirective>>& config,
                const LocalAccount& account)
      : host_(host), options_(options), config_(config_of_host(config, host.name)), account_(account) {}

  SshTarget build(const std::string& agent_socket) {
    target_.host = host_.name;
    if (options_.command) need_program("--ssh-command");
    if (!config_.needs_program.empty()) need_program(config_.needs_program);
    set_address();
    set_identities();
    set_agent(agent_socket);
    set_known_hosts();
    if (config_.gssapi_authentication.value_or(false)) target_.program_methods.emplace_back("gssapi-with-mic");
    if (config_.host_based_authentication.value_or(false)) target_.program_methods.emplace_back("hostbased");
    return std::move(target_);
  }

 private:
  void need_program(const std::string& why) {
    if (target_.needs_program.empty()) target_.needs_program = why;
  }

  void set_address() {
    const Tokens only_host = [this](char token) {
      return token == 'h' ? std::optional<std::string>(host_.name) : std::nullopt;
    };
    target_.address = host_.name;
    if (config_.host_name) target_.address = expanded(*config_.host_name, "HostName", only_host);
    target_.port = host_.port.value_or(options_.port.value_or(config_.port.value_or(kDefaultPort)));
    target_.user = !host_.user.empty() ? host_.user : config_.user.value_or(account_.name);
    target_.may_be_this_host =
        host_.user.empty() && !host_.port && target_.port == kDefaultPort && target_.user == account_.name;
  }

  std::string expanded(const std::string& text, std::string_view what, const Tokens& tokens) {
    const std::optional<std::string> result = expand(text, tokens);
    if (!result) need_program(fmt::format("{} {}", what, text));
    return result.value_or(text);
  }

  /// A path of the configuration. The name of another user's home is a question for the password database: ssh's.
  std::string path(const std::string& text, std::string_view what) {
    const Tokens all = [this](char token) { return token_value(token); };
    const std::string result = expanded(text, what, all);
    if (result.substr(0, 2) == "~/") return account_.home + result.substr(1);
    if (result.substr(0, 1) == "~") need_program(fmt::format("{} {}", what, text));
    return result;
  }

  std::optional<std::string> token_value(char token) const {
    switch (token) {
      case 'd':
        return account_.home;
      case 'h':
        return target_.address;
      case 'i':
        return account_.user_id;
      case 'k':
        return config_.host_key_alias.value_or(host_.name);
      case 'L':
        return account_.host_name.substr(0, account_.host_name.find('.'));
      case 'l':
        return account_.host_name;
      case 'n':
        return host_.name;
      case 'p':
        return std::to_string(target_.port);
      case 'r':
        return target_.user;
      case 'u':
        return account_.name;
      default:
        return std::nullopt;
    }
  }

  /// The kinds that libssh2 knows come first; the others are there for ssh.
  void set_identities() {
    static constexpr std::array<std::string_view, 5> kDefaults = {"id_ed25519", "id_ecdsa", "id_rsa", "id_ed25519_sk",
                                                                  "id_ecdsa_sk"};
    target_.identities_only = config_.identities_only.value_or(false);
    if (!host_.identity.empty())
      target_.identities.push_back(path(host_.identity, "identity"));
    else if (!options_.identity.empty())
      target_.identities.push_back(options_.identity);
    for (const std::string& file : config_.identity_files) {
      if (file != "none") target_.identities.push_back(path(file, "IdentityFile"));
    }
    if (!target_.identities.empty() || !config_.identity_files.empty()) return;
    target_.identities_are_defaults = true;
    for (const std::string_view name : kDefaults)
      target_.identities.push_back(fmt::format("{}/.ssh/{}", account_.home, name));
  }

  void set_agent(const std::string& agent_socket) {
    target_.agent_socket = agent_socket;
    const std::string agent = config_.identity_agent.value_or("SSH_AUTH_SOCK");
    if (agent == "none")
      target_.agent_socket.clear();
    else if (agent.substr(0, 1) == "$")
      need_program("IdentityAgent " + agent);
    else if (agent != "SSH_AUTH_SOCK")
      target_.agent_socket = path(agent, "IdentityAgent");
  }

  void set_known_hosts() {
    const std::string folder = account_.home + "/.ssh/";
    add_known_hosts(
        config_.user_known_hosts.value_or(std::vector<std::string>{folder + "known_hosts", folder + "known_hosts2"}));
    target_.user_known_hosts = target_.known_hosts.size();
    add_known_hosts(config_.global_known_hosts.value_or(
        std::vector<std::string>{"/etc/ssh/ssh_known_hosts", "/etc/ssh/ssh_known_hosts2"}));
    target_.known_hosts_host = config_.host_key_alias.value_or(target_.address);
    target_.known_hosts_port = config_.host_key_alias ? kDefaultPort : target_.port;
    const std::string checking = config_.strict_host_key_checking.value_or("ask");
    const bool accepts = checking == "no" || checking == "off" || checking == "false" || checking == "accept-new";
    if (accepts || options_.accept_new_host_keys) target_.new_host_key = SshTarget::NewHostKey::kAccept;
    target_.hash_known_hosts = config_.hash_known_hosts.value_or(false);
  }

  void add_known_hosts(const std::vector<std::string>& files) {
    for (const std::string& file : files) {
      if (file != "none") target_.known_hosts.push_back(path(file, "known hosts file"));
    }
  }

  const Host& host_;
  const SshOptions& options_;
  const SshHostConfig config_;
  const LocalAccount& account_;
  SshTarget target_;
};

}  // namespace

SshTarget ssh_target(const Host& host, const SshOptions& options, const std::vector<std::vector<SshDirective>>& config,
                     const LocalAccount& account, const std::string& agent_socket) {
  return TargetBuilder(host, options, config, account).build(agent_socket);
}

std::string place_of(const SshTarget& target) {
  return fmt::format("{} port {}", target.address, target.port);
}

}  // namespace runjob
