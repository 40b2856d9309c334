#include "runtime/collectives/shm/remembered_ways.hpp"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <thread>

#include "runtime/collectives/shm/allreduce.hpp"
#include "tests/catch.hpp"
#include "tests/runtime/collectives/shm/thread_ranks.hpp"

using namespace runjob::runtime;
using Found = RouteTable::Found;

namespace {

class Folder {
 public:
  Folder() {
    char name[] = "/tmp/runjob-ways-XXXXXX";
    REQUIRE(::mkdtemp(name) != nullptr);
    path_ = name;
  }
  ~Folder() { std::filesystem::remove_all(path_); }

  /// One that does not exist yet.
  std::string path() const { return path_ + "/cache"; }
  std::size_t files() const {
    const std::filesystem::directory_iterator all(path());
    return static_cast<std::size_t>(std::distance(begin(all), end(all)));
  }

 private:
  std::string path_;
};

std::string contents(const std::string& path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

const Found kReduce{Kind::kAllreduce, 1u << 20, Way::kStreamedSlots}, kGather{Kind::kAllgather, 1u << 28, Way::kRead};

}  // namespace

TEST_CASE("what one job has found out is there for the next", "[runtime][unit]") {
  const Folder folder;
  const RememberedWays ways(folder.path(), 2);
  CHECK(ways.read().empty());
  ways.write({kGather});
  ways.write({kReduce});
  CHECK(RememberedWays(folder.path(), 2).read() == std::vector<Found>{kReduce, kGather});
  ways.write({{kReduce.kind, kReduce.bytes, Way::kSlots}});
  CHECK(ways.read().front().way == Way::kSlots);
  CHECK(folder.files() == 1);
}

TEST_CASE("another number of ranks is another thing to find out", "[runtime][unit]") {
  const Folder folder;
  RememberedWays(folder.path(), 2).write({kReduce});
  CHECK(RememberedWays(folder.path(), 3).read().empty());
}

TEST_CASE("a file that makes no sense is as good as none, and is written anew", "[runtime][unit]") {
  const Folder folder;
  const RememberedWays ways(folder.path(), 2);
  ways.write({kReduce});
  std::string text = contents(ways.path());
  const auto replace = [&](const std::string& what, const std::string& by) {
    REQUIRE(text.find(what) != std::string::npos);
    text.replace(text.find(what), what.size(), by);
  };
  SECTION("cut off") {
    text.resize(text.size() / 2);
  }
  SECTION("empty") {
    text.clear();
  }
  SECTION("another machine's") {
    replace("2 ranks", "9 ranks");
  }
  SECTION("an unknown way") {
    replace("streamed slots", "pigeons");
  }
  SECTION("a size that is none") {
    replace("1048576", "1048577");
  }
  SECTION("a size that is too large") {
    replace("1048576", "-1");
  }
  std::ofstream(ways.path()) << text;
  CHECK(ways.read().empty());
  ways.write({kGather});
  CHECK(ways.read() == std::vector<Found>{kGather});
}

TEST_CASE("without a folder nothing is remembered, and nothing fails", "[runtime][unit]") {
  for (const char* directory : {"", "/dev/null/cache", "/proc/cache"}) {
    const RememberedWays ways(directory, 2);
    ways.write({kReduce});
    CHECK(ways.read().empty());
  }
}

TEST_CASE("a job begins with what the last one has settled twice", "[runtime][unit]") {
  const Folder folder;
  const Layout layout = small_layout(2);
  constexpr std::size_t kCount = 8192;
  const auto run = [&](int messages) {
    const TestSegment segment(layout);
    std::vector<std::thread> ranks;
    for (const int rank : {0, 1}) {
      ranks.emplace_back([&, rank] {
        Channels channels(segment.data(), layout, options_of(rank), PeerOptions{.ways_directory = folder.path()});
        std::vector<float> values(kCount, 1);
        Call call{.kind = Kind::kAllreduce, .dtype = DType::kFloat32, .op = ReduceOp::kMax};
        call.input = call.output = values.data();
        call.count = kCount;
        for (int i = 0; i < messages; ++i) allreduce(channels, call);
      });
    }
    for (std::thread& rank : ranks) rank.join();
  };
  run(3);
  CHECK_FALSE(std::filesystem::exists(folder.path()));  // that was too little to say anything
  run(2000);
  const auto found = RememberedWays(folder.path(), 2).read();
  REQUIRE(found.size() == 1);
  CHECK(found[0].kind == Kind::kAllreduce);
  CHECK(found[0].bytes == kCount * sizeof(float));
}
