#include <runjob/grouped.hpp>

#include "tests/catch.hpp"
#include "tests/runtime/calls.hpp"
#include "tests/runtime/rank_processes.hpp"

using runjob::runtime::on_one_host;
using runjob::runtime::Outcome;
using runjob::runtime::require;
using runjob::runtime::run_alone;
using runjob::runtime::run_ranks;

TEST_CASE("the C++ interface runs groups and compresses", "[runtime][multiproc]") {
  for (const Outcome& outcome : run_ranks(on_one_host(2), [](int rank) {
         runjob::init();
         {
           std::vector<float> floats(3, 1.0F + static_cast<float>(rank));
           const std::vector<std::int32_t> in(2, rank);
           std::vector<std::int32_t> out(2);
           runjob::TensorGroup group;
           group.add(std::span(floats)).add(std::span(in), std::span(out));
           runjob::grouped_allreduce(group, "g", runjob::ReduceOp::max, {2, 1}, runjob::Compression::float16);
           require(floats == std::vector<float>(3, 4) && out == std::vector<std::int32_t>(2, 2), "allreduce");
           runjob::grouped_allreduce_async(group, "g").wait();
           require(floats[0] == 8 && out[0] == 1, "allreduce again");

           floats.assign(3, static_cast<float>(rank));
           runjob::grouped_broadcast(runjob::TensorGroup().add(std::span(floats)), 1, "b");
           require(floats == std::vector<float>(3, 1), "broadcast");

           const std::vector<std::uint8_t> part(static_cast<std::size_t>(2 * rank), 9);
           runjob::TensorGroup parts;
           parts.add(std::span(part)).add(std::span<const std::int32_t>(in));
           const runjob::GroupHandle gathered = runjob::grouped_allgather_async(parts, "gather");
           require(gathered.values<std::uint8_t>(0).size() == 2, "gathered bytes");
           require(gathered.values<std::int32_t>(1)[3] == 1, "gathered ints");
           const runjob::GroupHandle scattered = runjob::grouped_reducescatter_async(
               runjob::TensorGroup().add(std::span<const std::int32_t>(in)), "scatter");
           require(scattered.values<std::int32_t>(0).size() == 1 && scattered.values<std::int32_t>(0)[0] == 1,
                   "scattered");

           std::vector<double> fine(5, 1 + 0x1p-12);
           runjob::compressed_allreduce(std::span(fine), "fine", runjob::Compression::bfloat16,
                                        runjob::ReduceOp::average);
           require(fine == std::vector<double>(5, 1), "compressed");
         }
         runjob::shutdown();
         return Outcome();
       })) {
    INFO(outcome.message);
    CHECK(outcome.ok());
  }
}

TEST_CASE("a group whose input and output differ in size is refused", "[runtime]") {
  const Outcome outcome = run_alone([] {
    runjob::init();
    std::vector<float> two(2), three(3);
    try {
      runjob::grouped_allreduce(runjob::TensorGroup().add(std::span<const float>(two), std::span(three)), "g");
    } catch (const runjob::Error& error) {
      require(std::string(error.what()) == "allreduce 'g': input and output differ in size", error.what());
      runjob::shutdown();
      return Outcome();
    }
    throw std::runtime_error("not refused");
  });
  INFO(outcome.message);
  CHECK(outcome.ok());
}
