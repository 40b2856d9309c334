#include <cstdlib>
#include <limits>
#include <runjob/runjob.h>
#include <semaphore>
#include <sys/wait.h>
#include <unistd.h>

#include <nlohmann/json.hpp>

#include "tests/catch.hpp"
#include "tests/runtime/calls.hpp"
#include "tests/runtime/rank_processes.hpp"

using namespace runjob::runtime;

namespace {

void check_ok(const Outcome& outcome) {
  INFO(outcome.message);
  CHECK(outcome.ok());
}

}  // namespace

TEST_CASE("without init everything says so", "[runtime][multiproc]") {
  check_ok(run_alone([] {
    runjob_handle handle = 0;
    require(runjob_barrier_async("x", 0, &handle) == RUNJOB_NOT_INITIALIZED, "barrier");
    require(std::string(runjob_error_message()) == "runjob is not initialized: call init() first", "message");
    require(runjob_wait(1, 0) == RUNJOB_NOT_INITIALIZED, "wait");
    require(runjob_poll(1) == -1 && runjob_rank() == -1 && runjob_size() == -1 && runjob_is_homogeneous() == -1, "-1");
    require(runjob_is_initialized() == 0, "initialized");
    require(runjob_shutdown() == RUNJOB_OK, "shutdown");
    require(std::string(runjob_version()) == "0.1.0", "version");
    return outcome_of(RUNJOB_OK);
  }));
}

TEST_CASE("without a rendezvous a process is a job of size 1 in which everything works", "[runtime][multiproc]") {
  check_ok(run_alone([] {
    check(runjob_init());
    check(runjob_init());
    require(runjob_rank() == 0 && runjob_size() == 1 && runjob_local_size() == 1 && runjob_cross_size() == 1, "place");
    require(runjob_is_homogeneous() == 1, "homogeneous");
    check(small_allreduce("x"));
    check(barrier("b"));
    check(runjob_shutdown());
    check(runjob_shutdown());
    check(runjob_init());
    check(small_allreduce("x"));
    return outcome_of(runjob_shutdown());
  }));
}

TEST_CASE("arguments that can never work are refused at once, with the reason", "[runtime][multiproc]") {
  check_ok(run_alone([] {
    check(runjob_init());
    float values[2] = {};
    const std::int64_t two = 2, negative = -1;
    runjob_handle handle = 0;
    const auto refused = [](runjob_code code, const std::string& text) {
      require(code == RUNJOB_INVALID_ARGUMENT, "code for: " + text);
      require(std::string(runjob_error_message()).find(text) != std::string::npos, runjob_error_message());
    };
    const auto reduce = [&](const std::int64_t* shape, int ndim, int dtype, int op, void* out) {
      return runjob_allreduce_async("x", values, out, shape, ndim, static_cast<runjob_dtype>(dtype),
                                    static_cast<runjob_reduce_op>(op), 1, 1, 0, &handle);
    };
    refused(reduce(&two, 1, 11, 1, values), "11 is not a dtype");
    refused(reduce(&two, 1, 7, 6, values), "6 is not a reduction");
    refused(reduce(&negative, 1, 7, 1, values), "negative extent");
    refused(reduce(nullptr, 1, 7, 1, values), "1 dimensions");
    refused(reduce(&two, -1, 7, 1, values), "-1 dimensions");
    refused(reduce(&two, 1, 7, 1, nullptr), "allreduce 'x': the output is null");
    refused(reduce(&two, 1, RUNJOB_BOOL, RUNJOB_AVERAGE, values), "cannot be averaged");
    refused(runjob_barrier_async(nullptr, 3, &handle), "process set 3 does not exist");
    refused(runjob_barrier_async("x", 3, &handle), "process set 3 does not exist");
    refused(runjob_barrier_async("x", 0, nullptr), "handle");
    refused(runjob_broadcast_async("x", values, &two, 1, RUNJOB_FLOAT32, 1, 0, &handle), "root rank 1");
    refused(runjob_barrier("x", 0, 1.0, nullptr), "handle");
    refused(runjob_allgather("x", values, nullptr, 0, &two, 1, RUNJOB_FLOAT32, 0, -1, nullptr), "handle");
    refused(runjob_join(-1, nullptr), "handle");
    check(runjob_barrier("x", 0, -1, nullptr));
    refused(runjob_wait(77, 0), "77 is not a handle");
    check(runjob_barrier_async("x", 0, &handle));
    check(runjob_wait(handle, -1));
    refused(runjob_wait(handle, std::numeric_limits<double>::quiet_NaN()), "not a number");
    const void* data = nullptr;
    const std::int64_t* shape = nullptr;
    std::int32_t ndim = 0;
    refused(runjob_output(handle, &data, &shape, &ndim), "the operation has no output but the caller's buffer");
    return outcome_of(runjob_shutdown());
  }));
}

TEST_CASE("a name can be in flight once", "[runtime][multiproc]") {
  for (const Outcome& outcome : run_ranks(on_one_host(2), [](int rank) {
         check(runjob_init());
         if (rank == 0) {
           runjob_handle first = 0, second = 0;
           check(runjob_barrier_async("x", 0, &first));
           require(runjob_barrier_async("x", 0, &second) == RUNJOB_INVALID_ARGUMENT, "accepted");
           const std::string text = runjob_error_message();
           require(text == "barrier 'x': an operation of this name is still in flight on rank 0 on alpha", text);
           check(barrier("go"));
           check(finish(first));
         } else {
           check(barrier("go"));
           check(barrier("x"));
         }
         check(barrier("x"));
         return outcome_of(runjob_shutdown());
       })) {
    check_ok(outcome);
  }
}

TEST_CASE("ranks know their place on several hosts", "[runtime][multiproc]") {
  RankOptions options;
  options.hosts = {"a", "a", "b"};
  options.environment = {{"RUNJOB_GLOO_IFACE", "lo"}};
  const auto outcomes = run_ranks(options, [](int rank) {
    check(runjob_init());
    const int expected[][5] = {{0, 2, 0, 2, 0}, {1, 2, 0, 1, 0}, {0, 1, 1, 2, 0}};
    const int place[] = {runjob_local_rank(), runjob_local_size(), runjob_cross_rank(), runjob_cross_size(),
                         runjob_is_homogeneous()};
    require(std::equal(place, place + 5, expected[rank]), "place of rank " + std::to_string(rank));
    require(runjob_rank() == rank && runjob_size() == 3, "rank and size");
    check(small_allreduce("x"));
    return outcome_of(runjob_shutdown());
  });
  for (const Outcome& outcome : outcomes) check_ok(outcome);
}

TEST_CASE("init and shutdown can be repeated a hundred times in one job", "[runtime][multiproc]") {
  for (const Outcome& outcome : run_ranks(on_one_host(2), [](int) {
         for (int round = 0; round < 100; ++round) {
           check(runjob_init());
           check(small_allreduce("x"));
           check(runjob_shutdown());
         }
         return outcome_of(RUNJOB_OK);
       })) {
    check_ok(outcome);
  }
}

TEST_CASE("a rank that leaves at once lets the others finish their init", "[runtime][multiproc]") {
  for (const Outcome& outcome : run_ranks(on_one_host(3), [](int) {
         for (int round = 0; round < 30; ++round) {
           check(runjob_init());
           check(runjob_shutdown());
         }
         return outcome_of(RUNJOB_OK);
       })) {
    check_ok(outcome);
  }
}

TEST_CASE("the end of an operation is told once, on whatever thread, also of one whose handle was released",
          "[runtime][multiproc]") {
  for (const Outcome& outcome : run_ranks(on_one_host(2), [](int) {
         check(runjob_init());
         constexpr int kCount = 20;
         std::counting_semaphore<> told(0);
         const auto tell = [](void* context) { static_cast<std::counting_semaphore<>*>(context)->release(); };
         runjob_handle handle = 0;
         for (int i = 0; i < kCount; ++i) {
           check(runjob_barrier_async(std::to_string(i).c_str(), 0, &handle));
           check(runjob_on_done(handle, tell, &told));
           if (i % 2 == 0) runjob_release(handle);
         }
         for (int i = 0; i < kCount; ++i) told.acquire();
         require(!told.try_acquire() && runjob_poll(handle) == 1, "told once, when it was done");
         require(runjob_on_done(handle, nullptr, nullptr) == RUNJOB_INVALID_ARGUMENT, "nothing to call");
         require(runjob_on_done(12345, tell, &told) == RUNJOB_INVALID_ARGUMENT, "unknown");
         return outcome_of(runjob_shutdown());
       })) {
    check_ok(outcome);
  }
}

TEST_CASE("a forked child is not a member: its calls say so and do not hang, and it may start alone",
          "[runtime][multiproc]") {
  for (const Outcome& outcome : run_ranks(on_one_host(2), [](int) {
         check(runjob_init());
         runjob_handle handle = 0;
         check(runjob_barrier_async("x", 0, &handle));
         const pid_t pid = ::fork();
         if (pid == 0) {
           const bool right = runjob_is_initialized() == 0 && runjob_wait(handle, -1) == RUNJOB_NOT_INITIALIZED &&
                              runjob_poll(handle) == -1 && barrier("y") == RUNJOB_NOT_INITIALIZED &&
                              runjob_shutdown() == RUNJOB_OK;
           runjob_release(handle);
           ::_exit(right ? 0 : 1);
         }
         int status = -1;
         ::waitpid(pid, &status, 0);
         require(status == 0, "in the child: " + std::to_string(status));
         check(finish(handle));
         check(small_allreduce("z"));
         return outcome_of(runjob_shutdown());
       })) {
    check_ok(outcome);
  }
}

TEST_CASE("a rendezvous that is not there is an error with its address", "[runtime][multiproc]") {
  const Outcome outcome = run_alone([] { return outcome_of(runjob_init()); },
                                    {{"RUNJOB_RENDEZVOUS", "unix:/nonexistent/r.sock"}, {"RUNJOB_RANK", "0"}});
  CHECK(outcome.code == RUNJOB_CONNECT);
  CHECK_THAT(outcome.message, ContainsSubstring("/nonexistent/r.sock"));
}

TEST_CASE("a wrong variable is an error of init that names it", "[runtime][multiproc]") {
  const Outcome outcome = run_alone([] { return outcome_of(runjob_init()); }, {{"HOROVOD_GLOO_TIMEOUT_SECONDS", "x"}});
  CHECK(outcome.code == RUNJOB_INVALID_ARGUMENT);
  CHECK_THAT(outcome.message, ContainsSubstring("HOROVOD_GLOO_TIMEOUT_SECONDS: 'x'"));
}

TEST_CASE("every backend is listed with its version and path or the reason why it is absent", "[runtime][multiproc]") {
  check_ok(run_alone([] {
    const auto document = nlohmann::json::parse(runjob_backends_json());
    std::vector<std::string> names;
    for (const auto& backend : document.at("backends")) {
      names.push_back(backend.at("name"));
      const bool available = backend.at("available");
      require(available == backend.at("reason").get<std::string>().empty(), "a reason, or available");
      require(available != backend.at("version").get<std::string>().empty(), "a version, or absent");
    }
    require(names == std::vector<std::string>{"shm", "gloo", "mpi", "nccl", "ddl", "ccl", "cuda"}, "names");
    const auto& gloo = document.at("backends").at(1);
    require(gloo.at("available"), gloo.at("reason"));
    require(gloo.at("path").get<std::string>().find("libgloo.so") != std::string::npos, gloo.at("path"));
    return outcome_of(RUNJOB_OK);
  }));
}
