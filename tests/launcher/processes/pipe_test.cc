#include "launcher/processes/pipe.hpp"

#include <fcntl.h>
#include <string>

#include "tests/catch.hpp"

using namespace runjob;

TEST_CASE("a pipe carries bytes from one end to the other, and programs do not inherit it", "[unit]") {
  Pipe pipe = make_pipe();
  CHECK(::write(pipe.writer.get(), "abc", 3) == 3);
  pipe.writer.reset();
  std::string bytes(8, '\0');
  const auto count = ::read(pipe.reader.get(), bytes.data(), bytes.size());
  CHECK(count == 3);
  CHECK(bytes.substr(0, 3) == "abc");
  CHECK(::read(pipe.reader.get(), bytes.data(), bytes.size()) == 0);
  CHECK((::fcntl(pipe.reader.get(), F_GETFD) & FD_CLOEXEC) != 0);
}
