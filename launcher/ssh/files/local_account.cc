#include "launcher/ssh/files/local_account.hpp"

#include <pwd.h>
#include <unistd.h>
#include <vector>

namespace runjob {

LocalAccount local_account() {
  constexpr std::size_t kPasswordLine = 16 * 1024;
  LocalAccount account;
  account.user_id = std::to_string(::getuid());
  std::vector<char> buffer(kPasswordLine);
  passwd entry{};
  passwd* found = nullptr;
  const bool known = ::getpwuid_r(::getuid(), &entry, buffer.data(), buffer.size(), &found) == 0 && found != nullptr;
  account.name = known ? entry.pw_name : account.user_id;
  account.home = known ? entry.pw_dir : "/";
  char name[256] = "";
  if (::gethostname(name, sizeof name - 1) == 0) account.host_name = name;
  return account;
}

}  // namespace runjob
