#include "runtime/collectives/shm/memory/process_memory.hpp"

#include <csignal>
#include <numeric>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
#include <vector>

#include "base/error.hpp"
#include "tests/catch.hpp"

using runjob::Errc;
using runjob::Error;
using runjob::runtime::read_process;

namespace {

std::uint64_t address_of(const void* memory) {
  return reinterpret_cast<std::uintptr_t>(memory);
}

Errc code_of(pid_t process, std::uint64_t address, std::size_t bytes) {
  std::vector<std::byte> room(bytes);
  try {
    read_process(3, process, address, room.data(), bytes);
    return Errc::kOk;
  } catch (const Error& error) {
    CHECK_THAT(error.what(), ContainsSubstring("reading memory of rank 3 (process " + std::to_string(process) + ")"));
    return error.code();
  }
}

}  // namespace

TEST_CASE("memory of this and of another process is read", "[runtime][unit]") {
  std::vector<int> values(100000), copy(values.size());
  std::iota(values.begin(), values.end(), 1);
  const std::size_t bytes = values.size() * sizeof(int);
  read_process(0, ::getpid(), address_of(values.data()), copy.data(), bytes);
  CHECK(copy == values);
  const pid_t child = ::fork();
  if (child == 0) {
    for (;;) ::pause();
  }
  std::iota(values.begin(), values.end(), 2);  // the child's are as they were
  std::vector<int> of_child(values.size());
  read_process(1, child, address_of(values.data()), of_child.data(), bytes);
  CHECK(of_child == copy);
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
  CHECK(code_of(child, address_of(values.data()), bytes) == Errc::kPeerLost);
}

TEST_CASE("memory that is not there is an error, also in the middle", "[runtime][unit]") {
  auto* pages =
      static_cast<char*>(::mmap(nullptr, 3 * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  REQUIRE(::mprotect(pages + 4096, 4096, PROT_NONE) == 0);  // not unmapped: somebody else might map something there
  CHECK(code_of(::getpid(), address_of(pages), 4096) == Errc::kOk);
  CHECK(code_of(::getpid(), address_of(pages + 4096), 1) == Errc::kSystem);
  CHECK(code_of(::getpid(), address_of(pages), 3 * 4096) == Errc::kSystem);
  CHECK(code_of(::getpid(), address_of(pages + 4096), 0) == Errc::kOk);
  ::munmap(pages, 3 * 4096);
}
