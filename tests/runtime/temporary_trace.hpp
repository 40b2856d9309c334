#pragma once

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <unistd.h>

#include <nlohmann/json.hpp>

namespace runjob::runtime {

/// A file for a trace, removed at the end.
struct TemporaryTrace {
  std::string path = (std::filesystem::temp_directory_path() / "runjob-trace-XXXXXX").string();
  TemporaryTrace() { ::close(::mkstemp(path.data())); }
  ~TemporaryTrace() { std::filesystem::remove(path); }
};

/// Errors  what the parser throws: as it is, the file is no trace.
inline nlohmann::json parse_trace(const std::string& path) {
  std::ifstream stream(path);
  return nlohmann::json::parse(stream);
}

}  // namespace runjob::runtime
