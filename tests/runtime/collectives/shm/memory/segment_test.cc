#include "runtime/collectives/shm/memory/segment.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/error.hpp"
#include "tests/catch.hpp"

using namespace runjob::runtime;
using runjob::UniqueFd;

namespace {

UniqueFd copy_of(int descriptor) {
  return UniqueFd(::fcntl(descriptor, F_DUPFD_CLOEXEC, 0));
}

std::byte& first_byte(const Segment& segment) {
  return *static_cast<std::byte*>(segment.data());
}

}  // namespace

TEST_CASE("two mappings of a segment are the same memory, also without the descriptor", "[runtime][unit]") {
  Segment one = Segment::create(8192);
  const Segment two = Segment::attach(copy_of(one.descriptor()), 8192);
  one.take_descriptor().reset();
  CHECK(one.descriptor() == -1);
  CHECK(first_byte(two) == std::byte{0});
  first_byte(one) = std::byte{7};
  CHECK(first_byte(two) == std::byte{7});
  const Segment moved = std::move(one);
  CHECK(first_byte(moved) == std::byte{7});
  CHECK(one.data() == nullptr);
}

TEST_CASE("what a segment's file has behind it is not mapped", "[runtime][unit]") {
  const std::size_t behind = std::size_t{1} << 40;  // takes no memory
  const Segment one = Segment::create(4096, behind);
  const Segment two = Segment::attach(copy_of(one.descriptor()), 4096);
  CHECK(one.bytes() == 4096);
  CHECK(one.behind() == behind);
  CHECK(two.bytes() == 4096);
  CHECK(two.behind() == behind);
}

TEST_CASE("a segment can neither shrink nor grow, and its descriptor is closed on exec", "[runtime][unit]") {
  const Segment segment = Segment::create(4096);
  CHECK(::ftruncate(segment.descriptor(), 0) == -1);
  CHECK(::ftruncate(segment.descriptor(), 8192) == -1);
  CHECK((::fcntl(segment.descriptor(), F_GETFD) & FD_CLOEXEC) != 0);
}

TEST_CASE("a descriptor that is no sealed memory of this size is refused", "[runtime][unit]") {
  const Segment segment = Segment::create(4096);
  CHECK_THROWS_AS(Segment::attach(copy_of(segment.descriptor()), 8192), runjob::Error);
  CHECK_THROWS_AS(Segment::attach(UniqueFd(::open("/dev/null", O_RDWR | O_CLOEXEC)), 0), runjob::Error);
  UniqueFd unsealed(::memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  REQUIRE(::ftruncate(unsealed.get(), 4096) == 0);
  CHECK_THROWS_WITH(Segment::attach(std::move(unsealed), 4096), ContainsSubstring("no shared memory of this job"));
}

TEST_CASE("a forked child does not keep the memory", "[runtime][unit]") {
  const Segment segment = Segment::create(4096);
  const pid_t pid = ::fork();
  if (pid == 0) {
    unsigned char resident = 0;
    ::_exit(::mincore(segment.data(), 4096, &resident) == -1 ? 0 : 1);  // ENOMEM: nothing is mapped there
  }
  int status = -1;
  ::waitpid(pid, &status, 0);
  CHECK(status == 0);
}
