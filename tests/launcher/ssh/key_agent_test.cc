#include "launcher/ssh/key_agent.hpp"

#include <boost/asio/io_context.hpp>

#include "tests/catch.hpp"
#include "tests/launcher/ssh/loop.hpp"
#include "tests/launcher/ssh/test_client.hpp"

using namespace runjob;
namespace asio = boost::asio;

namespace {

asio::awaitable<std::size_t> sign_size(KeyAgent& agent, std::string path) {
  const std::vector<AgentKey> keys = co_await agent.keys(std::move(path));
  if (keys.empty()) co_return 0;
  const std::optional<std::string> signature = co_await agent.sign(keys.front().key, "data", 0);
  co_return signature ? signature->size() : 0;
}

}  // namespace

TEST_CASE("the keys of a real agent are listed, and sign", "[unit]") {
  TestAgent real;
  const TestFolder folder;
  real.add(folder.make_key("key", {"-t", "ed25519"}));
  asio::io_context context;
  KeyAgent lister(context.get_executor());
  const auto keys = run_on(context, lister.keys(real.socket()));
  REQUIRE(keys.size() == 1);
  CHECK(keys[0].key == parse_public_key(folder.read("key.pub")));
  CHECK(keys[0].comment == "test");
  KeyAgent signer(context.get_executor());
  CHECK(run_on(context, sign_size(signer, real.socket())) == 64);
}

TEST_CASE("an agent that is not there has no keys", "[unit]") {
  asio::io_context context;
  const TestFolder folder;
  for (const std::string& path :
       {std::string(), std::string("/nonexistent/agent"), std::string(200, 'x'), folder.write("file", "no socket")}) {
    KeyAgent agent(context.get_executor());
    CHECK(run_on(context, agent.keys(path)).empty());
  }
}
