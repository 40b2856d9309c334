#pragma once

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/use_awaitable.hpp>

namespace runjob {

/// Makes an operation of Asio awaitable, with its error code as the first part of the result instead of an exception.
inline constexpr auto kNoThrow = boost::asio::as_tuple(boost::asio::use_awaitable);

}  // namespace runjob
