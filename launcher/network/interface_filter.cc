#include "launcher/network/interface_filter.hpp"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/error.hpp"
#include "base/parse.hpp"
#include "launcher/network/ip_network.hpp"

namespace runjob {
namespace {

constexpr std::string_view kForms =
    "a name or its beginning (eth0, eth), a network (10.0.0.0/8, fd00::/8) or an address, separated by commas; '^' "
    "before the "
    "list excludes, '=' means the whole name";
constexpr std::size_t kLongestName = 15;  // netdevice(7): IFNAMSIZ with its final zero is 16

/// Reads one list. Its members are for the messages of errors.
class ListReader {
 public:
  ListReader(std::string_view list, std::string_view place) : rest_(list), list_(list), place_(place) {}

  void read_into(InterfaceFilter& filter) {
    skip_blanks();
    std::vector<InterfacePattern>& patterns = take('^') ? filter.excluded : filter.included;
    exact_ = take('=');
    for (;;) {
      patterns.push_back(pattern(next_word()));
      if (rest_.empty()) return;
      rest_.remove_prefix(1);  // the comma
    }
  }

 private:
  void skip_blanks() { rest_.remove_prefix(std::min(rest_.find_first_not_of(" \t"), rest_.size())); }

  bool take(char sign) {
    if (!rest_.starts_with(sign)) return false;
    rest_.remove_prefix(1);
    skip_blanks();
    return true;
  }

  std::string next_word() {
    const std::size_t comma = std::min(rest_.find(','), rest_.size());
    std::string_view word = rest_.substr(0, comma);
    rest_.remove_prefix(comma);
    word.remove_prefix(std::min(word.find_first_not_of(" \t"), word.size()));
    word = word.substr(0, word.find_last_not_of(" \t") + 1);
    return std::string(word);
  }

  InterfacePattern pattern(const std::string& word) const {
    if (word.empty()) refuse("has an empty word");
    if (word.find_first_of("^=") != std::string::npos) {
      refuse(fmt::format("has '{}': '^' and '=' stand before the whole list", word));
    }
    if (word.find('/') != std::string::npos) return network(word);
    if (is_ip_address(word)) return network(fmt::format("{}/{}", word, address_bits(word)));
    const auto is_blank_or_control = [](unsigned char c) { return c <= ' ' || c == 0x7f; };
    if (word.size() > kLongestName || std::any_of(word.begin(), word.end(), is_blank_or_control)) {
      refuse(fmt::format("has '{}', which is no name of an interface (1 to {} characters)", word, kLongestName));
    }
    return {exact_ ? InterfacePattern::Kind::kName : InterfacePattern::Kind::kNameOrPrefix, word, 0};
  }

  InterfacePattern network(const std::string& word) const {
    constexpr int kMostBits = 128;
    const std::size_t slash = word.find('/');
    const std::string what = fmt::format("{}: the length of the network '{}'", place_, word);
    const int length = static_cast<int>(parse_integer(word.substr(slash + 1), what, 0, kMostBits));
    const auto canonical = network_of(word.substr(0, slash), length);
    if (!canonical) refuse(fmt::format("has '{}', which is no network", word));
    return {InterfacePattern::Kind::kNetwork, *canonical, length};
  }

  [[noreturn]] void refuse(const std::string& problem) const {
    throw Error(Errc::kUsage, fmt::format("{}: '{}' {}; expected {}", place_, list_, problem, kForms));
  }

  std::string_view rest_;
  std::string_view list_;
  std::string_view place_;
  bool exact_ = false;
};

bool matches(const InterfacePattern& pattern, const NetworkFacts& host, const NetworkInterface& interface,
             const InterfaceAddress& address) {
  const auto is_called_so = [&pattern](const NetworkInterface& each) { return each.name == pattern.text; };
  switch (pattern.kind) {
    case InterfacePattern::Kind::kName:
      return is_called_so(interface);
    case InterfacePattern::Kind::kNameOrPrefix:
      return is_called_so(interface) || (interface.name.starts_with(pattern.text) &&
                                         std::none_of(host.interfaces.begin(), host.interfaces.end(), is_called_so));
    case InterfacePattern::Kind::kNetwork:
      return network_of(address.address, pattern.prefix_length) == pattern.text;
  }
  return false;
}

bool any_matches(const std::vector<InterfacePattern>& patterns, const NetworkFacts& host,
                 const NetworkInterface& interface, const InterfaceAddress& address) {
  return std::any_of(patterns.begin(), patterns.end(),
                     [&](const InterfacePattern& pattern) { return matches(pattern, host, interface, address); });
}

}  // namespace

InterfaceFilter parse_interface_filter(const std::vector<std::string>& lists, std::string_view place) {
  InterfaceFilter filter;
  filter.text = fmt::format("{}", fmt::join(lists, " "));
  for (const std::string& list : lists) ListReader(list, place).read_into(filter);
  return filter;
}

bool allows(const InterfaceFilter& filter, const NetworkFacts& host, const NetworkInterface& interface,
            const InterfaceAddress& address) {
  if (any_matches(filter.excluded, host, interface, address)) return false;
  return filter.included.empty() || any_matches(filter.included, host, interface, address);
}

bool names(const InterfaceFilter& filter, const NetworkFacts& host, const NetworkInterface& interface,
           const InterfaceAddress& address) {
  return any_matches(filter.included, host, interface, address) && allows(filter, host, interface, address);
}

}  // namespace runjob
