#include "runtime/collectives/shm/remembered_ways.hpp"

#include <algorithm>
#include <bit>
#include <filesystem>
#include <fstream>
#include <map>
#include <stdexcept>
#include <thread>
#include <unistd.h>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/log.hpp"
#include "base/version.hpp"
#include "runtime/collectives/instruction_set.hpp"

namespace runjob::runtime {
namespace {

/// As Linux calls it; empty where it does not say.
std::string processor_model() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    const std::size_t colon = line.find(": ");
    if (line.starts_with("model name") && colon != line.npos) return line.substr(colon + 2);
  }
  return {};
}

const std::vector<std::pair<Way, std::string>> kWayNames = {{Way::kOneStep, "one step"},
                                                            {Way::kStreamedOneStep, "streamed one step"},
                                                            {Way::kSlots, "slots"},
                                                            {Way::kStreamedSlots, "streamed slots"},
                                                            {Way::kRead, "read"},
                                                            {Way::kStreamedOutput, "streamed output"},
                                                            {Way::kStreamed, "streamed slots and output"}};

constexpr Kind kKinds[] = {Kind::kAllreduce, Kind::kAllgather, Kind::kBroadcast, Kind::kAlltoall, Kind::kReducescatter};

/// Errors  std::exception when it makes no sense.
RouteTable::Found parse(const nlohmann::json& entry) {
  const auto way_name = entry.at("way").get<std::string>(), kind_name = entry.at("kind").get<std::string>();
  const auto bytes = entry.at("bytes").get<std::size_t>();
  if (!std::has_single_bit(bytes)) throw std::invalid_argument("no power of two");
  for (const auto& [way, name] : kWayNames) {
    for (const Kind kind : kKinds) {
      if (name == way_name && kind_name == to_string(kind)) return {kind, bytes, way};
    }
  }
  throw std::invalid_argument("an unknown name");
}

nlohmann::ordered_json to_json(const RouteTable::Found& found) {
  const auto is_its = [&](const auto& each) { return each.first == found.way; };
  const auto name = std::find_if(kWayNames.begin(), kWayNames.end(), is_its);
  return {{"kind", std::string(to_string(found.kind))}, {"bytes", found.bytes}, {"way", name->second}};
}

}  // namespace

RememberedWays::RememberedWays(const std::string& directory, int ranks) {
  if (directory.empty()) return;
  machine_ = fmt::format("runjob {}: {} ranks, {} processors, {}, {}", kVersion, ranks,
                         std::thread::hardware_concurrency(), to_string(best_instruction_set()), processor_model());
  path_ = fmt::format("{}/ways-{:016x}.json", directory, std::hash<std::string>()(machine_));
}

std::vector<RouteTable::Found> RememberedWays::read() const {
  std::vector<RouteTable::Found> all;
  if (path_.empty()) return all;
  try {
    std::ifstream file(path_);
    if (!file) return all;
    const auto document = nlohmann::json::parse(file);
    if (document.at("machine") != machine_) return all;
    for (const auto& entry : document.at("ways")) all.push_back(parse(entry));
  } catch (const std::exception& error) {
    log::debug("{} is not what was expected, and is ignored: {}", path_, error.what());
    all.clear();
  }
  return all;
}

void RememberedWays::write(const std::vector<RouteTable::Found>& found) const {
  if (path_.empty() || found.empty()) return;
  try {
    std::map<std::pair<Kind, std::size_t>, RouteTable::Found> all;
    const std::vector<RouteTable::Found> before = read();
    for (const auto* each : {&before, &found}) {
      for (const RouteTable::Found& entry : *each) all[{entry.kind, entry.bytes}] = entry;
    }
    nlohmann::ordered_json document{{"machine", machine_}, {"ways", nlohmann::ordered_json::array()}};
    for (const auto& [key, entry] : all) document["ways"].push_back(to_json(entry));
    std::filesystem::create_directories(std::filesystem::path(path_).parent_path());
    const std::string unfinished = fmt::format("{}.{}", path_, ::getpid());
    std::ofstream file(unfinished);
    file << document.dump(1) << '\n';
    file.close();
    if (file.fail()) return static_cast<void>(std::filesystem::remove(unfinished));
    std::filesystem::rename(unfinished, path_);
  } catch (const std::exception& error) {
    log::debug("{} was not written: {}", path_, error.what());
  }
}

}  // namespace runjob::runtime
