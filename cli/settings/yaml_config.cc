#include "cli/settings/yaml_config.hpp"

#include <fmt/format.h>
#include <yaml-cpp/yaml.h>

#include "base/error.hpp"

namespace runjob {
namespace {

[[noreturn]] void refuse(std::string_view path, int line, std::string_view problem) {
  throw Error(Errc::kUsage, fmt::format("file {}: line {}: {}", path, line + 1, problem));
}

/// Flattens maps into dotted keys. Aliases can make a small file endless, hence the two bounds.
class Flattener {
 public:
  explicit Flattener(std::string_view path) : path_(path) {}

  void add(const std::string& prefix, const YAML::Node& map, int depth) {
    constexpr int kDeepest = 8;
    if (depth > kDeepest) refuse(path_, map.Mark().line, "expected fewer levels of keys");
    for (const auto& pair : map) {
      if (!pair.first.IsScalar()) refuse(path_, pair.first.Mark().line, "expected a word as key");
      const std::string key = prefix + pair.first.Scalar();
      if (pair.second.IsMap()) {
        add(key + ".", pair.second, depth + 1);
      } else {
        add_entry(key, pair.first.Mark().line, pair.second);
      }
    }
  }

  std::vector<ConfigEntry> take() { return std::move(entries_); }

 private:
  void add_entry(const std::string& key, int line, const YAML::Node& value) {
    constexpr std::size_t kMostEntries = 10'000;
    ConfigEntry entry{key, {}, line + 1};
    if (value.IsScalar()) entry.values.push_back(value.Scalar());
    if (value.IsSequence()) {
      for (const YAML::Node& item : value) {
        if (!item.IsScalar()) refuse(path_, item.Mark().line, fmt::format("expected plain values in the list {}", key));
        entry.values.push_back(item.Scalar());
      }
    }
    if (entries_.size() == kMostEntries) refuse(path_, line, "expected fewer keys");
    entries_.push_back(std::move(entry));
  }

  std::string_view path_;
  std::vector<ConfigEntry> entries_;
};

}  // namespace

std::vector<ConfigEntry> yaml_entries(const std::string& text, std::string_view path) {
  try {
    const YAML::Node root = YAML::Load(text);
    if (root.IsNull()) return {};
    if (!root.IsMap()) refuse(path, 0, "expected 'key: value' lines");
    Flattener flattener(path);
    flattener.add("", root, 0);
    return flattener.take();
  } catch (const YAML::Exception& error) {
    refuse(path, error.mark.line, error.msg);
  }
}

}  // namespace runjob
