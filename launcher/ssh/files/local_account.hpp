#pragma once

#include <string>

namespace runjob {

/// Who runs runjob here: what ssh's own defaults are made of.
struct LocalAccount {
  std::string name;
  std::string home;       ///< from the password database, where ssh looks too; HOME does not matter
  std::string user_id;    ///< in digits
  std::string host_name;  ///< of this machine
};

/// Asks the system. A user whom the password database does not know has the name that his number is, and `/`.
LocalAccount local_account();

}  // namespace runjob
