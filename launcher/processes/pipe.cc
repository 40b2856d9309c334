#include "launcher/processes/pipe.hpp"

#include <cerrno>
#include <fcntl.h>

#include "base/error.hpp"

namespace runjob {

Pipe make_pipe() {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) throw system_error("cannot make a pipe", errno);
  return {UniqueFd(ends[0]), UniqueFd(ends[1])};
}

}  // namespace runjob
