#include "launcher/ssh/key_choice.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include <fmt/format.h>

namespace runjob {
namespace {

constexpr std::array<std::string_view, 4> kWorkingTypes = {"ssh-ed25519", "ecdsa-sha2-nistp256", "ecdsa-sha2-nistp384",
                                                           "ecdsa-sha2-nistp521"};

class Chooser {
 public:
  Chooser(const std::vector<AgentKey>& agent_keys, const KeyRules& rules) : agent_keys_(agent_keys), rules_(rules) {}

  void add_file(const IdentityFile& file) {
    if (file.has_certificate) choice_.for_program.push_back(file.path + "-cert.pub");
    if (file.public_key) {
      const auto held = std::find_if(agent_keys_.begin(), agent_keys_.end(),
                                     [&](const AgentKey& each) { return each.key == *file.public_key; });
      if (held != agent_keys_.end()) return add_agent_key(*held);
    }
    if (file.too_open != 0) {
      return choice_.too_open.push_back(
          fmt::format("Permissions {:04o} for '{}' are too open", file.too_open, file.path));
    }
    if (file.public_key) {
      if (!works(file.public_key->type())) return choice_.for_program.push_back(file.path);
    }
    if (file.private_key.empty()) return;
    if (file.is_rsa && !rules_.rsa_works) return choice_.for_program.push_back(file.path);
    if (file.encrypted) return choice_.locked.push_back(file.path);
    if (file.public_key && !is_new(*file.public_key)) return;
    choice_.candidates.push_back({std::nullopt, file.path, file.private_key, file.path});
  }

  void add_agent_key(const AgentKey& each) {
    if (!is_new(each.key)) return;
    const std::string name = fmt::format("{} {} (ssh-agent)", each.key.short_type(), each.key.fingerprint());
    if (!works(each.key.type())) return choice_.for_program.push_back(name);
    choice_.candidates.push_back({each.key, "", "", name});
  }

  void add_agent_keys() {
    if (rules_.identities_only) return;
    for (const AgentKey& each : agent_keys_) add_agent_key(each);
  }

  KeyChoice take() { return std::move(choice_); }

 private:
  bool works(const std::string& type) const {
    if (type == "ssh-rsa") return rules_.rsa_works;
    return std::find(kWorkingTypes.begin(), kWorkingTypes.end(), type) != kWorkingTypes.end();
  }

  bool is_new(const PublicKey& key) {
    if (std::find(seen_.begin(), seen_.end(), key) != seen_.end()) return false;
    seen_.push_back(key);
    return true;
  }

  const std::vector<AgentKey>& agent_keys_;
  const KeyRules& rules_;
  KeyChoice choice_;
  std::vector<PublicKey> seen_;
};

}  // namespace

KeyChoice choose_keys(const std::vector<IdentityFile>& files, const std::vector<AgentKey>& agent_keys,
                      const KeyRules& rules) {
  Chooser chooser(agent_keys, rules);
  if (rules.identities_are_defaults) chooser.add_agent_keys();
  for (const IdentityFile& file : files) chooser.add_file(file);
  if (!rules.identities_are_defaults) chooser.add_agent_keys();
  return chooser.take();
}

}  // namespace runjob
