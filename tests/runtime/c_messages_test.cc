#include <array>
#include <chrono>
#include <csignal>
#include <runjob/runjob.hpp>
#include <span>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <vector>

#include "tests/catch.hpp"
#include "tests/runtime/set_calls.hpp"

/// The messages of the C interface and of runjob.hpp, between real ranks.

using namespace runjob::runtime;

namespace {

std::vector<int> numbers(std::size_t count, int first) {
  std::vector<int> values(count);
  for (std::size_t i = 0; i < count; ++i) values[i] = first + static_cast<int>(i);
  return values;
}

runjob_handle start_receive(std::vector<int>& room, int peer, std::int64_t tag = 0, std::int32_t set = 0) {
  runjob_handle handle = 0;
  check(runjob_recv_async(room.data(), static_cast<std::int64_t>(room.size() * sizeof(int)), peer, tag, set, &handle));
  return handle;
}

runjob_handle start_send(const std::vector<int>& values, int peer, std::int64_t tag = 0, std::int32_t set = 0) {
  runjob_handle handle = 0;
  check(runjob_send_async(values.data(), static_cast<std::int64_t>(values.size() * sizeof(int)), peer, tag, set,
                          &handle));
  return handle;
}

RankOptions on(const std::vector<std::string>& hosts, const std::string& encrypts = "0") {
  RankOptions options = with_sets(hosts);
  options.environment["RUNJOB_ENCRYPT_DATA"] = encrypts;
  return options;
}

}  // namespace

TEST_CASE("messages pass between ranks of one host and of several, beside collectives", "[runtime][multiproc]") {
  const RankOptions options =
      GENERATE(on({"alpha", "alpha", "alpha"}), on({"alpha", "alpha", "beta"}), on({"alpha", "alpha", "beta"}, "1"));
  run_members(options, [](int rank) {
    const int next = (rank + 1) % 3, previous = (rank + 2) % 3;
    for (const std::size_t count : {std::size_t{1}, std::size_t{0}, std::size_t{500'000}}) {
      std::vector<int> room(count, -1);
      const std::vector<int> own = numbers(count, rank);
      const runjob_handle receive = start_receive(room, previous, 7), send = start_send(own, next, 7);
      check(small_allreduce("beside"));
      check(runjob_wait(receive, -1));
      std::int32_t peer = -1;
      std::int64_t bytes = -1;
      check(runjob_received_from(receive, &peer, &bytes));
      runjob_release(receive);
      check(finish(send));
      require(peer == previous && bytes == static_cast<std::int64_t>(count * sizeof(int)), "the sender");
      require(room == numbers(count, previous), "the values");
    }
  });
}

TEST_CASE("a rank of a process set is the peer in the order of the set", "[runtime][multiproc]") {
  run_members(on({"alpha", "alpha", "beta"}), [](int rank) {
    const std::int32_t set = add_set({2, 0});
    if (rank == 1) {
      runjob_handle handle = 0;
      require(runjob_send_async(nullptr, 0, 0, 0, set, &handle) == RUNJOB_INVALID_ARGUMENT, "not in the set");
      check(barrier("end"));
      return;
    }
    std::vector<int> room(3);
    const runjob_handle receive = start_receive(room, runjob::any_rank, 0, set);
    check(finish(start_send({rank, 5, 6}, rank == 0 ? 1 : 0, 0, set)));
    check(runjob_wait(receive, -1));
    std::int32_t peer = -1;
    check(runjob_received_from(receive, &peer, nullptr));
    runjob_release(receive);
    require(peer == (rank == 0 ? 1 : 0) && room[0] == 2 - rank, "the peer of the set");
    check(barrier("end"));
  });
}

TEST_CASE("the first message comes while its receiver waits in a collective", "[runtime][multiproc]") {
  run_members(on({"alpha", "alpha"}), [](int rank) {
    std::vector<int> room(4);
    if (rank == 0) check(finish(start_send(numbers(4, 3), 1)));
    check(barrier("sent"));
    if (rank == 0) return;
    check(finish(start_receive(room, 0)));
    require(room == numbers(4, 3), "the values");
  });
}

TEST_CASE("wrong arguments are refused at once, and what is no receive has no sender", "[runtime][multiproc]") {
  run_members(on({"alpha", "alpha"}), [](int) {
    runjob_handle handle = 0;
    const auto refused = [](runjob_code code, const std::string& text) {
      require(code == RUNJOB_INVALID_ARGUMENT, "the code is " + std::to_string(code));
      require(std::string(runjob_error_message()).find(text) != std::string::npos, runjob_error_message());
    };
    refused(runjob_send_async(nullptr, 1, 0, 0, 0, &handle), "send: 1 bytes at");
    refused(runjob_recv_async(nullptr, -1, 0, 0, 0, &handle), "receive: -1 bytes");
    refused(runjob_recv_async(nullptr, 0, 0, 0, 0, nullptr), "somewhere to put its handle");
    refused(runjob_send_async(nullptr, 0, -1, 0, 0, &handle), "no rank -1");
    refused(runjob_recv_async(nullptr, 0, 2, 0, 0, &handle), "no rank 2");
    refused(runjob_recv_async(nullptr, 0, 0, 0, 9, &handle), "process set 9 does not exist");
    check(runjob_barrier_async("b", 0, &handle));
    check(runjob_wait(handle, -1));
    refused(runjob_received_from(handle, nullptr, nullptr), "only a receive has a sender");
    runjob_release(handle);
  });
  const Outcome before = run_alone([] {
    runjob_handle handle = 0;
    return outcome_of(runjob_send_async(nullptr, 0, 0, 0, 0, &handle));
  });
  CHECK(before.code == RUNJOB_NOT_INITIALIZED);
}

TEST_CASE("a receive ends with the rank that it waits for, soon", "[runtime][multiproc]") {
  const std::vector<Outcome> outcomes = run_ranks(on({"alpha", "alpha", "beta"}), [](int rank) {
    check(runjob_init());
    std::vector<int> room(1);
    if (rank == 1) {
      check(finish(start_send({1}, 0)));
      check(finish(start_send({1}, 2)));
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
      ::raise(SIGKILL);
    }
    check(finish(start_receive(room, 1)));
    return outcome_of(finish(start_receive(room, rank == 0 ? 1 : runjob::any_rank)));
  });
  for (const int rank : {0, 2}) {
    const Outcome& outcome = outcomes[static_cast<std::size_t>(rank)];
    INFO(outcome.message);
    CHECK(outcome.code == RUNJOB_PEER_LOST);
    CHECK_THAT(outcome.message, ContainsSubstring("rank 1 on alpha"));
  }
}

TEST_CASE("messages between the others go on when a rank leaves", "[runtime][multiproc]") {
  check_all_ok(run_ranks(on({"alpha", "alpha", "alpha"}), [](int rank) {
    check(runjob_init());
    std::vector<int> room(1);
    if (rank == 2) return outcome_of(runjob_shutdown());
    std::this_thread::sleep_for(std::chrono::milliseconds(1500));  // rank 2 is gone
    for (int turn = 0; turn < 3; ++turn) {
      if (rank == 0) check(finish(start_send({turn}, 1)));
      if (rank == 1) check(finish(start_receive(room, 0)));
      require(rank == 0 || room[0] == turn, "the value");
    }
    require(finish(start_receive(room, 2)) == RUNJOB_ABORTED || finish(start_receive(room, 2)) == RUNJOB_CONNECT,
            std::string("a rank that has left: ") + runjob_error_message());
    return outcome_of(runjob_shutdown());
  }));
}

TEST_CASE("the C++ interface sends and receives spans", "[runtime][multiproc]") {
  run_members(on({"alpha", "alpha"}), [](int rank) {
    const runjob::Communicator world;
    std::array<double, 3> values{};
    if (rank == 0) {
      values = {1, 2, 3};
      world.send_async(std::span<const double>(values).first(2), 1, 4).wait();
    } else {
      const auto received = world.recv_async(std::span<double>(values), runjob::any_rank, 4).received();
      require(received.peer == 0 && received.bytes == 16 && values[1] == 2 && values[2] == 0, "the values");
    }
  });
}
