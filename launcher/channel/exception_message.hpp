#pragma once

#include <exception>
#include <optional>
#include <string>

namespace runjob {

/// The message of an exception that ended a coroutine or a thread; nullopt for a null pointer. An exception that is not
/// a std::exception is thrown again.
std::optional<std::string> exception_message(const std::exception_ptr& error);

}  // namespace runjob
