#include "launcher/remote/bootstrap.hpp"

#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <optional>
#include <signal.h>
#include <stdlib.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/use_future.hpp>
#include <fmt/format.h>

#include "base/error.hpp"
#include "launcher/channel/fd_channel.hpp"
#include "launcher/channel/frame.hpp"
#include "launcher/processes/child_process.hpp"
#include "tests/catch.hpp"

using namespace runjob;
namespace fs = std::filesystem;
using namespace std::chrono_literals;

namespace {

/// A "host": a home directory, and a login shell that runs one command for us.
class ShellHost {
 public:
  ShellHost() {
    char name[] = "/tmp/runjob-bootstrap-XXXXXX";
    home = ::mkdtemp(name);
    ::signal(SIGPIPE, SIG_IGN);
  }
  ~ShellHost() { fs::remove_all(home); }

  /// What came with the ready channel.
  std::string bootstrap(const AgentFile& agent, const std::string& before = "") {
    boost::asio::io_context context;
    auto channel = run(context, before + bootstrap_command(agent, 60s));
    auto ready = boost::asio::co_spawn(context, bootstrap_agent(std::move(channel), agent), boost::asio::use_future);
    context.run();
    while (::waitpid(-1, nullptr, 0) > 0) {
    }
    return ready.get().received;
  }

  void clean(const std::string& before = "") {
    boost::asio::io_context context;
    auto channel = run(context, before + clean_cache_command());
    auto cleaned = boost::asio::co_spawn(context, cache_cleaned(std::move(channel)), boost::asio::use_future);
    context.run();
    while (::waitpid(-1, nullptr, 0) > 0) {
    }
    cleaned.get();
  }

  std::unique_ptr<Channel> run(boost::asio::io_context& context, const std::string& command) {
    int ends[2];
    REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) == 0);
    UniqueFd ours(ends[0]);
    const UniqueFd theirs(ends[1]);
    ChildSpec child;
    child.command = {"/bin/sh", "-c", command};
    child.environment = {{"HOME", home.string()}, {"PATH", path}};
    child.standard_input = theirs.get();
    child.standard_output = theirs.get();
    REQUIRE(start_child(child).pid > 0);
    UniqueFd input(::dup(ours.get()));
    return std::make_unique<FdChannel>(context.get_executor(), std::move(input), std::move(ours));
  }

  /// A program that answers as the agent does: with the magic.
  AgentFile agent(const std::string& build_id, const std::string& said) const {
    const std::string file = home / ("program-" + build_id);
    std::ofstream(file) << "#!/bin/sh\nprintf '" << said << "'\n# " << std::string(1'000'000, '.') << "\n";
    return {file, build_id, "x86_64"};
  }
  fs::path cache() const { return home / ".cache" / "runjob"; }

  fs::path home;
  std::string path = "/usr/bin:/bin";
};

constexpr const char* kFrames = "\\177runjob-frames1\\n";

/// Mounts a file system in memory at `folder`; false, with a warning, where this process may not.
bool mount_memory(const fs::path& folder, unsigned long flags, const char* options) {
  if (::mount("none", folder.c_str(), "tmpfs", flags, options) == 0) return true;
  REQUIRE(errno == EPERM);
  WARN("skipped: mounting a file system needs root");
  return false;
}

}  // namespace

TEST_CASE("the agent is uploaded once and found from then on", "[unit]") {
  ShellHost host;
  const AgentFile agent = host.agent("abc", kFrames);
  CHECK(host.bootstrap(agent).ends_with(kMagic));
  const fs::path file = host.cache() / "agent-abc";
  CHECK(fs::file_size(file) == fs::file_size(agent.path));
  CHECK((fs::status(file).permissions() & fs::perms::mask) == fs::perms::owner_all);
  CHECK(std::distance(fs::directory_iterator(host.cache()), {}) == 1);

  fs::remove(agent.path);  // from here on the copy must be enough
  CHECK(host.bootstrap(agent) == kMagic);
}

TEST_CASE("what a login shell prints before is passed on", "[unit]") {
  ShellHost host;
  utsname system{};
  ::uname(&system);
  CHECK(host.bootstrap(host.agent("abc", kFrames), "echo Welcome; ") ==
        fmt::format("Welcome\n\nrunjob-agent-missing Linux x86_64 {}\n{}", system.release, kMagic));
}

TEST_CASE("a login shell may print text without a line's end", "[unit]") {
  ShellHost host;
  const std::string title = "printf \"\\033]0;title\\007\"; ";
  CHECK(host.bootstrap(host.agent("abc", kFrames), title).ends_with(kMagic));
  host.clean(title);
  CHECK(fs::is_empty(host.cache()));
  REQUIRE(::chmod(host.cache().c_str(), 0777) == 0);
  CHECK_THROWS_WITH(host.bootstrap(host.agent("abc", kFrames), title), ContainsSubstring("others may write to"));
}

TEST_CASE("a copy without contents, as a power cut leaves it, is replaced", "[unit]") {
  ShellHost host;
  const AgentFile agent = host.agent("abc", kFrames);
  host.bootstrap(agent);
  fs::resize_file(host.cache() / "agent-abc", 0);
  CHECK(host.bootstrap(agent).ends_with(kMagic));
  CHECK(fs::file_size(host.cache() / "agent-abc") == fs::file_size(agent.path));
}

TEST_CASE("a damaged copy is never used", "[unit]") {
  ShellHost host;
  AgentFile agent = host.agent("abc", kFrames);
  host.path = host.home.string() + ":/usr/bin:/bin";
  std::ofstream(host.home / "sha256sum") << "#!/bin/sh\necho 1 -\n";
  REQUIRE(::chmod((host.home / "sha256sum").c_str(), 0755) == 0);
  CHECK_THROWS_WITH(host.bootstrap(agent), "the copy in " + host.cache().string() + " differs, is there space left?");
  CHECK(fs::is_empty(host.cache()));
}

TEST_CASE("an upload that is cut off half-way leaves nothing, although its end never comes", "[unit]") {
  ShellHost host;
  const AgentFile agent = host.agent("abc", kFrames);
  boost::asio::io_context context;
  const auto channel = host.run(context, bootstrap_command(agent, 1s));
  const std::string half = fmt::format("1000000 {}\n{}", std::string(64, '0'), std::string(500'000, '.'));
  const auto written = boost::asio::co_spawn(
      context,
      [&]() -> boost::asio::awaitable<void> {
        std::vector<boost::asio::const_buffer> buffers{boost::asio::buffer(half)};
        co_await channel->write(std::move(buffers));
      },
      boost::asio::use_future);
  context.run();
  REQUIRE(::waitpid(-1, nullptr, 0) > 0);  // the host's shell; the channel is still open
  CHECK(fs::is_directory(host.cache()));
  CHECK(fs::is_empty(host.cache()));
}

TEST_CASE("an upload removes those that were left an hour ago and more", "[unit]") {
  ShellHost host;
  const AgentFile agent = host.agent("abc", kFrames);
  REQUIRE(fs::create_directories(host.cache()));
  for (const char* name : {"upload.old", "upload.new", "agent-old"}) std::ofstream(host.cache() / name) << "part";
  for (const char* name : {"upload.old", "agent-old"})
    fs::last_write_time(host.cache() / name, fs::file_time_type::clock::now() - 61min);
  CHECK(host.bootstrap(agent).ends_with(kMagic));
  CHECK_FALSE(fs::exists(host.cache() / "upload.old"));
  CHECK(fs::exists(host.cache() / "upload.new"));
  CHECK(fs::exists(host.cache() / "agent-old"));
}

TEST_CASE("a host that cannot take the agent says why", "[unit]") {
  ShellHost host;
  const AgentFile agent = host.agent("abc", kFrames);
  SECTION("the directory cannot be made") {
    std::ofstream(host.home / ".cache") << "a file";
    CHECK_THROWS_WITH(host.bootstrap(agent), "cannot make the directory " + host.cache().string());
  }
  SECTION("the disk is full") {
    REQUIRE(fs::create_directories(host.cache()));
    if (!mount_memory(host.cache(), 0, "mode=0700,size=64k")) return;
    CHECK_THROWS_WITH(host.bootstrap(agent),
                      "cannot write to " + host.cache().string() + " within 60 s, is there space left?");
    CHECK(fs::is_empty(host.cache()));
    REQUIRE(::umount(host.cache().c_str()) == 0);
  }
  SECTION("programs may not be executed there") {
    REQUIRE(fs::create_directories(host.cache()));
    if (!mount_memory(host.cache(), MS_NOEXEC, "mode=0700")) return;
    CHECK_THROWS_WITH(host.bootstrap(agent), "programs may not be executed in " + host.cache().string());
    REQUIRE(::umount(host.cache().c_str()) == 0);
  }
  SECTION("it is of another kind") {
    AgentFile other = agent;
    other.machine = "riscv64";
    CHECK_THROWS_WITH(host.bootstrap(other),
                      ContainsSubstring("this host is a Linux x86_64 system, and the agent is for Linux "
                                        "riscv64; runjob starts hosts of its own kind only"));
  }
  SECTION("its kernel is too old") {
    host.path = host.home.string() + ":/usr/bin:/bin";
    std::ofstream(host.home / "uname")
        << "#!/bin/sh\ncase $1 in -s) echo Linux;; -m) echo x86_64;; -r) cat $HOME/release;; esac\n";
    REQUIRE(::chmod((host.home / "uname").c_str(), 0755) == 0);
    for (const char* release : {"2.6.32-754.el6.x86_64", "3.10.0-1160.el7.x86_64", "3.2"}) {
      std::ofstream(host.home / "release") << release << '\n';
      CHECK_THROWS_WITH(host.bootstrap(agent),
                        fmt::format("this host's Linux {} is too old; runjob needs 3.17 or newer there", release));
    }
    for (const char* release : {"3.17", "4.18.0-553.el8_10.x86_64", "unknown"}) {
      std::ofstream(host.home / "release") << release << '\n';
      fs::remove_all(host.cache());
      CHECK(host.bootstrap(agent).ends_with(kMagic));
    }
  }
}

TEST_CASE("a shell that never runs the command is quoted", "[unit]") {
  ShellHost host;
  const AgentFile agent = host.agent("abc", kFrames);
  CHECK_THROWS_WITH(host.bootstrap(agent, "echo This account is closed; exit 1; "), "This account is closed ");
  CHECK_THROWS_WITH(host.bootstrap(agent, "exit 1; "), "the connection was closed before the agent answered");
  CHECK_THROWS_AS(host.bootstrap(agent, "yes; "), Error);
}

namespace {

/// A folder that everybody may write to, as /tmp, and that is the user's cache folder on `host`.
class SharedFolder {
 public:
  explicit SharedFolder(const ShellHost& host) : path(host.home / "shared") {
    REQUIRE(fs::create_directory(path));
    REQUIRE(::chmod(path.c_str(), 01777) == 0);
    REQUIRE(::chmod(host.home.c_str(), 0755) == 0);
  }

  /// Another user runs `command` there.
  void other_user(const std::string& command) const {
    REQUIRE(std::system(fmt::format("cd {} && setpriv --reuid=65534 --regid=65534 --clear-groups sh -c '{}'",
                                    path.string(), command)
                            .c_str()) == 0);
  }
  std::string as_cache() const { return fmt::format("XDG_CACHE_HOME={}; export XDG_CACHE_HOME; ", path.string()); }

  fs::path path;
};

constexpr const char* kPlant = "printf \"#!/bin/sh\\necho stolen\\n\" > runjob/agent-abc; chmod 755 runjob/agent-abc";

}  // namespace

TEST_CASE("another user's program in the cache's folder is not run", "[unit]") {
  if (::getuid() != 0) {
    WARN("skipped: another user needs root");
    return;
  }
  ShellHost host;
  const AgentFile agent = host.agent("abc", kFrames);
  const SharedFolder shared(host);
  const std::string folder = (shared.path / "runjob").string();
  const std::string remedy = "; remove it, or set XDG_CACHE_HOME";
  std::string refused;
  SECTION("the folder is his") {
    shared.other_user(std::string("mkdir runjob; ") + kPlant);
    refused = folder + " belongs to user 65534, and not to you" + remedy + " to a folder of yours";
  }
  SECTION("the folder is ours, and he may write to it") {
    REQUIRE(fs::create_directory(folder));
    REQUIRE(::chmod(folder.c_str(), 0777) == 0);
    shared.other_user(kPlant);
    refused = "others may write to " + folder + "; remove it after a look, or chmod go-w " + folder;
  }
  SECTION("the folder is a link") {
    REQUIRE(fs::create_directory(shared.path / "ours"));
    std::ofstream(shared.path / "ours" / "agent-abc") << "ours";
    shared.other_user("ln -s ours runjob");
    refused = folder + " is a link, and runjob follows none there" + remedy;
  }
  CHECK_THROWS_WITH(host.bootstrap(agent, shared.as_cache()), refused);

  CHECK_THROWS_WITH(host.clean(shared.as_cache()), refused);
  CHECK(fs::exists(shared.path / "runjob" / "agent-abc"));
}

TEST_CASE("another user's program in a folder that is ours by now is not run", "[unit]") {
  if (::getuid() != 0) {
    WARN("skipped: another user needs root");
    return;
  }
  ShellHost host;
  const SharedFolder shared(host);
  const fs::path folder = shared.path / "runjob";
  REQUIRE(fs::create_directory(folder));
  REQUIRE(::chmod(folder.c_str(), 0777) == 0);
  shared.other_user(kPlant);
  REQUIRE(::chmod(folder.c_str(), 0755) == 0);
  const AgentFile agent = host.agent("abc", kFrames);
  CHECK_THROWS_WITH(host.bootstrap(agent, shared.as_cache()),
                    folder.string() +
                        "/agent-abc belongs to user 65534, and not to you; remove it, or set "
                        "XDG_CACHE_HOME to a folder of yours");
  host.clean(shared.as_cache());
  CHECK(host.bootstrap(agent, shared.as_cache()).ends_with(kMagic));
}

TEST_CASE("launches at the same time do not disturb each other", "[unit]") {
  ShellHost host;
  const AgentFile agent = host.agent("abc", kFrames);
  boost::asio::io_context context;
  std::vector<std::future<ReadyChannel>> all;
  for (int i = 0; i < 8; ++i) {
    auto channel = host.run(context, bootstrap_command(agent, 60s));
    all.push_back(boost::asio::co_spawn(context, bootstrap_agent(std::move(channel), agent), boost::asio::use_future));
  }
  context.run();
  for (auto& each : all) CHECK(each.get().received.ends_with(kMagic));
  while (::waitpid(-1, nullptr, 0) > 0) {
  }
  CHECK(std::distance(fs::directory_iterator(host.cache()), {}) == 1);
}

TEST_CASE("cleaning removes every agent and nothing else", "[unit]") {
  ShellHost host;
  host.bootstrap(host.agent("abc", kFrames));
  host.bootstrap(host.agent("def", kFrames));
  std::ofstream(host.cache() / "mine") << "data";
  host.clean();
  CHECK(std::distance(fs::directory_iterator(host.cache()), {}) == 1);
  CHECK(fs::exists(host.cache() / "mine"));
  fs::remove_all(host.cache());
  host.clean();
  CHECK_THROWS_WITH(host.clean("exit 1; "), "the connection was closed before the cache was cleaned");
}
