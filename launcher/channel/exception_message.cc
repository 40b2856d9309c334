#include "launcher/channel/exception_message.hpp"

namespace runjob {

std::optional<std::string> exception_message(const std::exception_ptr& error) {
  try {
    if (error) std::rethrow_exception(error);
  } catch (const std::exception& exception) {
    return exception.what();
  }
  return std::nullopt;
}

}  // namespace runjob
