#include "launcher/ssh/key_agent.hpp"

#include <array>
#include <utility>

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/read.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>

#include "launcher/ssh/files/ssh_data.hpp"

namespace runjob {
namespace {

namespace asio = boost::asio;

constexpr std::uint8_t kRequestIdentities = 11;
constexpr std::uint8_t kSignRequest = 13;
constexpr std::size_t kMostBytes = 256 * 1024;  // as ssh allows

}  // namespace

asio::awaitable<std::vector<AgentKey>> KeyAgent::keys(std::string path) {
  // Longer paths cannot be an address, and Asio throws on them.
  constexpr std::size_t kLongestPath = 107;
  if (path.empty() || path.size() > kLongestPath) co_return std::vector<AgentKey>{};
  const asio::local::stream_protocol::endpoint endpoint(path);
  const auto [error] = co_await socket_.async_connect(endpoint, asio::as_tuple(asio::use_awaitable));
  if (error) co_return std::vector<AgentKey>{};
  std::string request(1, static_cast<char>(kRequestIdentities));
  const std::string answer = co_await ask(std::move(request));
  co_return parse_agent_keys(answer);
}

asio::awaitable<std::optional<std::string>> KeyAgent::sign(PublicKey key, std::string data, std::uint32_t flags) {
  std::string request(1, static_cast<char>(kSignRequest));
  append_string(request, key.blob);
  append_string(request, data);
  append_number(request, flags);
  const std::string answer = co_await ask(std::move(request));
  co_return parse_agent_signature(answer);
}

asio::awaitable<std::string> KeyAgent::ask(std::string request) {
  std::string message;
  append_string(message, request);
  const auto [unsent, sent] =
      co_await asio::async_write(socket_, asio::buffer(message), asio::as_tuple(asio::use_awaitable));
  static_cast<void>(sent);
  std::array<char, 4> head{};
  const auto [unheard, heard] =
      co_await asio::async_read(socket_, asio::buffer(head), asio::as_tuple(asio::use_awaitable));
  static_cast<void>(heard);
  if (unsent || unheard) co_return std::string();
  const std::size_t size = SshDataReader({head.data(), head.size()}).number();
  if (size == 0 || size > kMostBytes) co_return std::string();
  std::string answer(size, '\0');
  const auto [failed, got] =
      co_await asio::async_read(socket_, asio::buffer(answer), asio::as_tuple(asio::use_awaitable));
  static_cast<void>(got);
  if (failed) co_return std::string();
  co_return answer;
}

}  // namespace runjob
