#pragma once

#include <array>
#include <cinttypes>
#include <cstdint>
#include <cstdio>
#include <fcntl.h>
#include <fstream>
#include <string>
#include <unistd.h>
#include <vector>

#include "base/secrets/secret.hpp"
#include "base/unique_handle.hpp"
#include "tests/catch.hpp"

namespace runjob {

/// A key to look for, changed so that it is not found itself.
using MaskedKey = std::array<unsigned char, 32>;

inline MaskedKey masked(const Secret& key) {
  MaskedKey result{};
  for (std::size_t i = 0; i < result.size(); ++i) result[i] = key.bytes()[i] ^ 0x5a;
  return result;
}

/// How often a core dump of this process would have the key: in the memory that it may write to, without the pages that
/// the kernel leaves out (`dd` in /proc/PID/smaps) and without what a sanitizer reserves.
inline int copies_in_core_dump(const MaskedKey& key) {
  constexpr std::uintptr_t kMostBytes = 256u << 20;
  const UniqueFd memory(::open("/proc/self/mem", O_RDONLY | O_CLOEXEC));
  REQUIRE(memory);
  std::ifstream maps("/proc/self/smaps");
  std::uintptr_t begin = 0, end = 0;
  bool is_written = false;
  int copies = 0;
  for (std::string line; std::getline(maps, line);) {
    std::uintptr_t first = 0, last = 0;
    std::array<char, 8> rights{};
    if (std::sscanf(line.c_str(), "%" SCNxPTR "-%" SCNxPTR " %7s", &first, &last, rights.data()) == 3) {
      begin = first, end = last;
      is_written = rights[0] == 'r' && rights[1] == 'w';
    }
    if (!line.starts_with("VmFlags:") || !is_written || end - begin > kMostBytes) continue;
    if ((line + ' ').find(" dd ") != line.npos) continue;
    std::vector<unsigned char> bytes(end - begin);
    const ssize_t count = ::pread(memory.get(), bytes.data(), bytes.size(), static_cast<off_t>(begin));
    for (std::size_t at = 0; at + key.size() <= static_cast<std::size_t>(std::max<ssize_t>(count, 0)); ++at) {
      std::size_t same = 0;
      while (same < key.size() && (bytes[at + same] ^ 0x5a) == key[same]) ++same;
      if (same == key.size()) ++copies;
    }
  }
  return copies;
}

}  // namespace runjob
