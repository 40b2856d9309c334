#include <runjob/elastic.hpp>
#include <unistd.h>

#include "tests/catch.hpp"
#include "tests/runtime/calls.hpp"
#include "tests/runtime/member_ranks.hpp"
#include "tests/runtime/rank_processes.hpp"

/// The state in jobs that are not elastic. tests/install/test_install.py has elastic ones.

using runjob::runtime::check_all_ok;
using runjob::runtime::on_one_host;
using runjob::runtime::Outcome;
using runjob::runtime::require;
using runjob::runtime::run_ranks;

namespace {

struct Parts {
  explicit Parts(int rank) : weights(3, static_cast<float>(rank)), step(rank), words(1, "of " + std::to_string(rank)) {
    state.add(std::span(weights)).add(step);
    state.add([this] { return save(); }, [this](std::span<const std::byte> bytes) { load(bytes); });
  }

  std::vector<std::byte> save() const {
    if (fails) throw std::runtime_error("cannot be copied");
    const auto bytes = std::as_bytes(std::span(words.back()));
    return {bytes.begin(), bytes.end()};
  }
  void load(std::span<const std::byte> bytes) {
    words = {std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size())};
  }

  std::vector<float> weights;
  int step;
  std::vector<std::string> words;
  bool fails = false;
  runjob::elastic::State state;
};

}  // namespace

TEST_CASE("a job of fixed size begins with rank 0's state and raises errors", "[runtime][multiproc]") {
  check_all_ok(run_ranks(on_one_host(3), [](int rank) {
    runjob::init();
    Parts parts(rank);
    int calls = 0;
    require(runjob::elastic::run(parts.state, [&] { ++calls; }), "finished");
    require(calls == 1 && parts.weights == std::vector<float>(3, 0) && parts.step == 0, "rank 0's arrays and values");
    require(parts.words == std::vector<std::string>{"of 0"}, "rank 0's serialized parts");
    parts.state.commit();
    try {
      static_cast<void>(
          runjob::elastic::run(parts.state, [] { throw runjob::Error(RUNJOB_PEER_LOST, "of the program"); }));
      require(false, "raised");
    } catch (const runjob::Error& error) {
      require(error.code() == RUNJOB_PEER_LOST, "the program's error");
    }
    runjob::shutdown();
    return Outcome();
  }));
}

TEST_CASE("a commit comes back, also after one that failed", "[runtime][multiproc]") {
  check_all_ok(run_ranks(on_one_host(1), [](int) {
    runjob::init();
    Parts parts(7);
    parts.state.restore();
    require(parts.step == 7, "nothing is restored before the first commit");
    parts.state.commit();
    const auto change = [&parts] {
      parts.weights.assign(3, 1);
      parts.step = 8;
      parts.words = {"changed"};
    };
    change();
    parts.fails = true;
    try {
      parts.state.commit();
      require(false, "the error of the program is thrown");
    } catch (const std::runtime_error& error) {
      require(error.what() == std::string("cannot be copied"), "it is the program's");
    }
    for (int i = 0; i < 2; ++i) {
      change();
      parts.state.restore();
      require(parts.weights == std::vector<float>(3, 7) && parts.step == 7, "restored");
      require(parts.words == std::vector<std::string>{"of 7"}, "restored words");
    }
    runjob::shutdown();
    return Outcome();
  }));
}

TEST_CASE("large spans are sent in pieces", "[runtime][multiproc]") {
  check_all_ok(run_ranks(on_one_host(2), [](int rank) {
    runjob::init();
    std::vector<std::uint8_t> values((std::size_t{64} << 20) + 5, static_cast<std::uint8_t>(rank + 1));
    runjob::elastic::State state;
    state.add(std::span(values));
    require(runjob::elastic::run(state, [] {}), "finished");
    require(values == std::vector<std::uint8_t>(values.size(), 1), "all bytes of rank 0");
    runjob::shutdown();
    return Outcome();
  }));
}

TEST_CASE("a state of which a part has come is not restored", "[runtime][multiproc]") {
  constexpr std::size_t kPiece = std::size_t{64} << 20;
  const std::vector<Outcome> outcomes = run_ranks(on_one_host(2), [](int rank) {
    runjob::init();
    std::vector<std::uint8_t> values(kPiece + 8, static_cast<std::uint8_t>(rank + 1));
    runjob::elastic::State state;
    state.add(std::span(values));
    state.save();
    if (rank == 0) {  // sends the first piece and ends, instead of run()
      const runjob::Communicator world;
      std::int64_t form[6] = {1, static_cast<std::int64_t>(values.size()), 0, 0, 0, 0};
      form[5] = static_cast<std::int64_t>((14695981039346656037u ^ values.size()) * 1099511628211u);
      world.broadcast(std::span<std::int64_t>(form), 0, "runjob.elastic.form");
      std::vector<std::uint8_t> differs(2);
      world.allreduce(std::span<std::uint8_t>(differs), "runjob.elastic.form.differs", runjob::ReduceOp::max);
      const std::int64_t part[3] = {0, 1, static_cast<std::int64_t>(values.size())};
      std::vector<std::uint8_t> bytes(sizeof part), parts(2 * sizeof part);
      std::memcpy(bytes.data(), part, sizeof part);
      world.allgather(std::span<const std::uint8_t>(bytes), std::span(parts), "runjob.elastic.receivers");
      world.broadcast(std::span(values).first(kPiece), 0, "runjob.elastic.state");
      ::_exit(0);
    }
    try {
      static_cast<void>(runjob::elastic::run(state, [] {}));
      require(false, "the loss is thrown");
    } catch (const runjob::Error& error) {
      require(error.code() == RUNJOB_PEER_LOST || error.code() == RUNJOB_ABORTED, error.what());
    }
    state.restore();
    require(values == std::vector<std::uint8_t>(values.size(), 2), "the values are this rank's, all of them");
    state.save();
    values.assign(values.size(), 7);
    state.restore();
    require(values == std::vector<std::uint8_t>(values.size(), 2), "a later copy is whole");
    return Outcome();
  });
  INFO(outcomes[1].message);
  CHECK(outcomes[1].ok());
}

TEST_CASE("states with other parts than rank 0's are an error on all ranks that names them", "[runtime][multiproc]") {
  check_all_ok(run_ranks(on_one_host(3), [](int rank) {
    runjob::init();
    std::vector<double> values(rank == 1 ? 3 : 2);
    runjob::elastic::State state;
    state.add(std::span(values));
    try {
      static_cast<void>(runjob::elastic::run(state, [] {}));
      require(false, "thrown");
    } catch (const runjob::Error& error) {
      const std::string text = error.what();
      require(error.code() == RUNJOB_MISMATCH, text);
      require(text.find("the state of rank 1 has other parts than rank 0's; add the same parts in the same order") !=
                  std::string::npos,
              text);
      const bool has_sizes = text.find("This is rank 1, with 1 spans of 24 bytes") != std::string::npos &&
                             text.find("rank 0 has 1 spans of 16 bytes") != std::string::npos;
      require(has_sizes == (rank == 1), text);
    }
    runjob::shutdown();
    return Outcome();
  }));
}

TEST_CASE("a state needs the job", "[unit]") {
  Parts parts(0);
  CHECK_THROWS_WITH(runjob::elastic::run(parts.state, [] {}), ContainsSubstring("call init() first"));
}
