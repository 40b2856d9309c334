#include <runjob/runjob.hpp>

#include "tests/catch.hpp"
#include "tests/runtime/calls.hpp"
#include "tests/runtime/rank_processes.hpp"

using runjob::runtime::on_one_host;
using runjob::runtime::Outcome;
using runjob::runtime::require;
using runjob::runtime::run_alone;
using runjob::runtime::run_ranks;

TEST_CASE("the C++ interface runs every collective, blocking and asynchronous", "[runtime][multiproc]") {
  for (const Outcome& outcome : run_ranks(on_one_host(2), [](int rank) {
         runjob::init();
         {
           const runjob::Communicator world;
           require(world.rank() == rank && world.size() == 2 && world.local_size() == 2, "place");
           std::vector<float> values(100, static_cast<float>(rank));
           world.allreduce(std::span(values), "in place");
           require(values.back() == 1, "sum");
           const std::vector<double> in(7, rank + 1.0);
           std::vector<double> out(7);
           runjob::Handle handle =
               world.allreduce_async(std::span(in), std::span(out), "apart", runjob::ReduceOp::max, {2, 0.5});
           while (!handle.wait_for(std::chrono::seconds(1))) continue;
           require(handle.done() && out.front() == 2, "max");
           std::vector<std::int64_t> shared(3, rank);
           world.broadcast(std::span(shared), 1, "b");
           require(shared.front() == 1, "broadcast");
           const std::vector<std::uint8_t> part(static_cast<std::size_t>(2 * rank), 9);
           require(world.allgather(std::span(part), "g") == std::vector<std::uint8_t>(2, 9), "allgather");
           const auto rows = world.allgather_async(std::span(part), "rows", 2);
           require(rows.shape() == std::vector<std::int64_t>{1, 2}, "rows");
           world.barrier("end");
         }
         runjob::shutdown();
         return Outcome();
       })) {
    INFO(outcome.message);
    CHECK(outcome.ok());
  }
}

TEST_CASE("a symmetric buffer is memory of its own, and moves", "[runtime][multiproc]") {
  for (const Outcome& outcome : run_ranks(on_one_host(2), [](int rank) {
         runjob::init();
         runjob::SymmetricBuffer<float> values(100000);
         for (float& value : values) value = static_cast<float>(rank);
         const runjob::Communicator world;
         world.allreduce(std::span(values), "in place");
         require(values[99999] == 1 && values.size() == 100000, "sum");
         runjob::SymmetricBuffer<float> moved(std::move(values));
         require(values.data() == nullptr && values.size() == 0 && moved[0] == 1, "moved");
         values = std::move(moved);
         require(moved.data() == nullptr && values[99999] == 1, "moved back");
         runjob::shutdown();
         require(values[0] == 1, "after shutdown");
         try {
           const runjob::SymmetricBuffer<double> none(1);
           require(false, "without a job");
         } catch (const runjob::Error& error) {
           require(error.code() == RUNJOB_NOT_INITIALIZED, error.what());
         }
         return Outcome();
       })) {
    INFO(outcome.message);
    CHECK(outcome.ok());
  }
}

TEST_CASE("a communicator of a process set runs collectives among its ranks", "[runtime][multiproc]") {
  for (const Outcome& outcome : run_ranks(on_one_host(3), [](int rank) {
         runjob::init({{0, 2}}, /*dynamic=*/true);
         const runjob::ProcessSet pair(1);
         require(pair.ranks() == std::vector<std::int32_t>{0, 2} && pair.size() == 2, "the set");
         require(pair.included() == (rank != 1) && pair.rank() == (rank == 1 ? -1 : rank / 2), "its rank");
         if (pair.included()) {
           const runjob::Communicator two(pair);
           require(two.rank() == rank / 2 && two.size() == 2 && two.process_set() == pair, "place");
           std::vector<float> values(10, static_cast<float>(rank));
           two.allreduce(std::span(values), "x", runjob::ReduceOp::average);
           require(values[9] == 1, "average");
           two.broadcast(std::span(values), 2, "b");
           const std::vector<float> part(1, static_cast<float>(rank));
           require(two.allgather(std::span(part), "g") == std::vector<float>{0, 2}, "allgather");
           std::vector<float> out(1);
           two.alltoall(std::span<const float>(values).first(2), std::span(values).first(2), "a");
           two.reducescatter(std::span<const float>(values).first(2), std::span(out), "r");
           require(out[0] == 2, "reducescatter");
           two.barrier("end");
         }
         const std::vector<std::int32_t> ranks{1, 2};
         const runjob::ProcessSet added = runjob::add_process_set(ranks);
         require(added.id() == 2 && added.included() == (rank > 0), "added");
         runjob::remove_process_set(added);
         require(added.size() == -1, "removed");
         runjob::shutdown();
         return Outcome();
       })) {
    INFO(outcome.message);
    CHECK(outcome.ok());
  }
}

TEST_CASE("a result goes into the caller's room, which it must fill", "[runtime][multiproc]") {
  for (const Outcome& outcome : run_ranks(on_one_host(2), [](int rank) {
         runjob::init();
         const runjob::Communicator world;
         const auto mine = static_cast<float>(rank + 1);
         const std::vector<float> in{mine, 10 * mine};
         for (int i = 0; i < 3; ++i) {  // negotiated, then known
           std::vector<float> gathered(4), exchanged(2), part(1);
           world.allgather(std::span(in), std::span(gathered), "g");
           require(gathered == std::vector<float>{1, 10, 2, 20}, "allgather");
           world.alltoall(std::span(in), std::span(exchanged), "a");
           require(exchanged == (rank == 0 ? std::vector<float>{1, 2} : std::vector<float>{10, 20}), "alltoall");
           world.reducescatter(std::span(in), std::span(part), "r");
           require(part[0] == (rank == 0 ? 3 : 30), "reducescatter");
           for (const std::size_t wrong : {3u, 5u}) {
             std::vector<float> room(wrong);
             try {
               world.allgather(std::span(in), std::span(room), "g");
               require(false, "accepted");
             } catch (const runjob::Error& error) {
               require(error.code() == RUNJOB_INVALID_ARGUMENT, "code");
               require(error.what() == "allgather 'g': the result has 4 elements, the output " + std::to_string(wrong),
                       error.what());
             }
           }
         }
         runjob::shutdown();
         return Outcome();
       })) {
    INFO(outcome.message);
    CHECK(outcome.ok());
  }
}

TEST_CASE("failures are exceptions with the code and the text", "[runtime][multiproc]") {
  const Outcome outcome = run_alone([] {
    try {
      const runjob::Communicator world;
    } catch (const runjob::Error& error) {
      require(error.code() == RUNJOB_NOT_INITIALIZED, "code");
    }
    runjob::init();
    const runjob::Communicator world;
    std::vector<float> three(3), two(2);
    try {
      world.allreduce(std::span<const float>(three), std::span(two), "x");
    } catch (const runjob::Error& error) {
      return Outcome{error.code(), error.what(), 0};
    }
    return Outcome();
  });
  CHECK(outcome.code == RUNJOB_INVALID_ARGUMENT);
  CHECK(outcome.message == "allreduce 'x': input and output differ in size");
}

TEST_CASE("a handle that goes waits for its operation first", "[runtime][multiproc]") {
  for (const Outcome& outcome : run_ranks(on_one_host(2), [](int) {
         runjob::init();
         const runjob::Communicator world;
         for (int i = 0; i < 50; ++i) {
           std::vector<float> values(5000, 1);
           { const runjob::Handle handle = world.allreduce_async(std::span(values), "x"); }
           require(values.back() == 2, "not done");
         }
         runjob::shutdown();
         return Outcome();
       })) {
    INFO(outcome.message);
    CHECK(outcome.ok());
  }
}
