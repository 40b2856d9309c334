#include "launcher/ssh/resolve_name.hpp"

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <memory>
#include <netdb.h>
#include <sys/eventfd.h>
#include <system_error>
#include <thread>
#include <unistd.h>
#include <utility>

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/ip/address.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/use_awaitable.hpp>

#include "base/error.hpp"
#include "base/unique_handle.hpp"

namespace runjob {
namespace {

namespace asio = boost::asio;
using asio::ip::tcp;

/// Shared by the thread that asks and the coroutine that waits; each may be gone first.
struct Question {
  std::string name;
  std::string service;
  UniqueFd answered;  // an eventfd
  int failure = 0;    // of getaddrinfo
  std::vector<tcp::endpoint> endpoints;
};

std::vector<tcp::endpoint> endpoints_of(const addrinfo* list) {
  std::vector<tcp::endpoint> endpoints;
  for (const addrinfo* each = list; each != nullptr; each = each->ai_next) {
    tcp::endpoint endpoint;
    if (each->ai_addrlen > endpoint.capacity()) continue;
    std::memcpy(endpoint.data(), each->ai_addr, each->ai_addrlen);
    endpoint.resize(each->ai_addrlen);
    endpoints.push_back(endpoint);
  }
  return endpoints;
}

void answer(Question& question) {
  addrinfo hints{};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* list = nullptr;
  question.failure = ::getaddrinfo(question.name.c_str(), question.service.c_str(), &hints, &list);
  if (question.failure == 0) {
    question.endpoints = endpoints_of(list);
    ::freeaddrinfo(list);
  }
  constexpr std::uint64_t kOnce = 1;
  static_cast<void>(!::write(question.answered.get(), &kOnce, sizeof kOnce));
}

void ask_in_background(const std::shared_ptr<Question>& question) {
  try {
    std::thread([question] { answer(*question); }).detach();
  } catch (const std::system_error& error) {
    throw Error(Errc::kConnect, std::string("a thread for its name cannot be started: ") + error.what());
  }
}

std::string describe_failure(int failure) {
  switch (failure) {
    case EAI_NONAME:
    case EAI_NODATA:
    case EAI_ADDRFAMILY:
      return "the name is not known";
    case EAI_AGAIN:
      return "no name server answers (temporary failure in name resolution)";
    case EAI_SYSTEM:
      return "the name cannot be looked up";
    default:
      return ::gai_strerror(failure);
  }
}

}  // namespace

asio::awaitable<std::vector<tcp::endpoint>> resolve_name(asio::any_io_executor executor, std::string name, int port) {
  boost::system::error_code not_numeric;
  const asio::ip::address address = asio::ip::make_address(name, not_numeric);
  std::vector<tcp::endpoint> endpoints;
  if (!not_numeric) {
    endpoints.emplace_back(address, static_cast<std::uint16_t>(port));
    co_return endpoints;
  }
  const auto question = std::make_shared<Question>();
  question->name = std::move(name);
  question->service = std::to_string(port);
  question->answered = UniqueFd(::eventfd(0, EFD_CLOEXEC));
  UniqueFd event(question->answered ? ::dup(question->answered.get()) : -1);
  if (!event)
    throw Error(Errc::kConnect, std::string("no descriptor is left to look its name up: ") + std::strerror(errno));
  asio::posix::stream_descriptor answered(executor, event.release());
  ask_in_background(question);
  const auto [error] =
      co_await answered.async_wait(asio::posix::descriptor_base::wait_read, asio::as_tuple(asio::use_awaitable));
  if (error) throw Error(Errc::kConnect, "looking its name up was cancelled");
  std::uint64_t once = 0;
  static_cast<void>(!::read(answered.native_handle(), &once, sizeof once));  // also orders the threads' memory
  if (question->failure != 0) throw Error(Errc::kConnect, describe_failure(question->failure));
  if (question->endpoints.empty()) throw Error(Errc::kConnect, "the name has no address");
  endpoints = question->endpoints;
  co_return endpoints;
}

}  // namespace runjob
