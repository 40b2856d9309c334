#pragma once

#include <string>
#include <string_view>

#include "base/status.hpp"

/// How a rank leaves a job without a failure, as the reason with which the operations of other ranks end. Pure
/// functions.
namespace runjob::runtime {

enum class Goodbye {
  kShutdown,    ///< the rank called shutdown()
  kProgramEnd,  ///< the rank's program ended, and left the job in doing so
};

/// `rank`: its name in messages. "rank 1 on b called shutdown()", with Errc::kAborted.
Status goodbye_reason(std::string_view rank, Goodbye how);

/// True for a reason that goodbye_reason() made: a rank has left, and nothing has failed.
bool is_goodbye(const Status& reason);

/// The outcome of `operation`, with which the rank `self` waits, when `reason` is why it ended. The goodbye of another
/// rank gets the name of the operation and a hint; every other reason stays as it is.
Status with_operation(const Status& reason, std::string_view self, std::string_view operation);

}  // namespace runjob::runtime
