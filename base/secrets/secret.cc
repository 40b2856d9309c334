#include "base/secrets/secret.hpp"

#include <cerrno>
#include <cstring>
#include <new>
#include <sys/mman.h>

#include "base/error.hpp"

namespace runjob {

Secret::Secret() {
  void* page = ::mmap(nullptr, sizeof(Bytes), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (page == MAP_FAILED) throw system_error("memory for a key", errno);
  ::madvise(page, sizeof(Bytes), MADV_DONTDUMP);
  ::mlock(page, sizeof(Bytes));  // fails where the limit is reached; the key is as good then
  bytes_.reset(new (page) Bytes{});
}

void Secret::Free::operator()(Bytes* bytes) const {
  ::explicit_bzero(bytes->data(), bytes->size());
  ::munmap(bytes, sizeof(Bytes));
}

void wipe(std::string& text) {
  ::explicit_bzero(text.data(), text.size());
  text.clear();
}

}  // namespace runjob
