#include <cstring>
#include <dlfcn.h>

#include "base/version.hpp"
#include "runtime/collectives/backend.hpp"
#include "runtime/collectives/tcp/tcp_transport.hpp"
#include "tests/catch.hpp"

using namespace runjob::runtime;

TEST_CASE("the module exports its table, from which a backend can be made", "[runtime][net]") {
  void* module = ::dlopen(RUNJOB_GLOO_MODULE, RTLD_NOW | RTLD_LOCAL);
  INFO((module == nullptr ? ::dlerror() : ""));
  REQUIRE(module != nullptr);
  const auto* plugin = static_cast<const BackendPlugin*>(::dlsym(module, kPluginSymbol));
  REQUIRE(plugin != nullptr);
  CHECK(std::strcmp(plugin->build, runjob::kVersion) == 0);
  CHECK(std::strcmp(plugin->library_version(), "0.5.0") == 0);
  CHECK_THAT(std::string(plugin->library_path()), ContainsSubstring("libgloo.so"));

  std::unique_ptr<DataBackend> backend;
  MeshOptions options;
  options.size = 2;
  options.bind_address = "127.0.0.1";
  CHECK(plugin->create(options, std::make_unique<TcpTransport>(all_pairs(options)), backend).ok());
  CHECK_FALSE(backend->address().empty());
}
