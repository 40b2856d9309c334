#include "runtime/collectives/hierarchical/rounds/far_board.hpp"

#include <string>

#include "tests/catch.hpp"
#include "tests/runtime/collectives/shm/thread_ranks.hpp"

using namespace runjob::runtime;

namespace {

std::span<const std::byte> bytes_of(const std::string& text) {
  return std::as_bytes(std::span(text));
}

std::string text_of(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

}  // namespace

TEST_CASE("a board keeps the messages of two rounds", "[runtime][unit]") {
  const int ranks = GENERATE(2, 7);
  const Layout layout(1, 4096, 4096, FarBoard::bytes(ranks));
  const TestSegment segment(layout);
  const FarBoard board(static_cast<std::byte*>(segment.data()) + layout.board(), ranks);
  const std::string longest(FarBoard::most_bytes(ranks), 'x');
  for (int rank = 0; rank < ranks; ++rank) {
    board.put(1, rank, {7, bytes_of("one" + std::to_string(rank))});
    board.put(2, rank, {8, bytes_of(longest)});
    board.given(rank).store(2);
    board.left_after(rank).store(3);
  }
  for (int rank = 0; rank < ranks; ++rank) {
    CHECK(board.tag(1, rank) == 7);
    CHECK(text_of(board.message(1, rank)) == "one" + std::to_string(rank));
    CHECK(board.tag(2, rank) == 8);
    CHECK(text_of(board.message(2, rank)) == longest);
    CHECK((board.given(rank).load() == 2 && board.left_after(rank).load() == 3));
  }
  CHECK((board.completed().load() == 0 && board.begun().load() == 0 && board.departures().load() == 0));
  board.put(3, 0, {9});
  CHECK(board.message(3, 0).empty());
  CHECK(board.tag(3, 0) == 9);
}

TEST_CASE("hundreds of ranks have room for their messages, in modest memory", "[runtime][unit]") {
  CHECK(FarBoard::most_bytes(256) == 4096);
  CHECK(FarBoard::most_data_bytes(256, Kind::kAllreduce) == 512);
  CHECK(FarBoard::bytes(256) < (3u << 20));
  CHECK(FarBoard::most_bytes(100000) == 256);
}

TEST_CASE("the place of what is not sent lies between the two parts that are", "[runtime][unit]") {
  const Layout layout(1, 4096, 4096, FarBoard::bytes(2));
  const TestSegment segment(layout);
  const FarBoard board(static_cast<std::byte*>(segment.data()) + layout.board(), 2);
  const std::string begin = "begin", end = "the end";
  board.put(1, 1, {.tag = 5, .bytes = bytes_of(begin), .unread = 100, .rest = bytes_of(end)});
  const std::string message = text_of(board.message(1, 1));
  CHECK(message.size() == begin.size() + 100 + end.size());
  CHECK(message.starts_with(begin));
  CHECK(message.ends_with(end));
}

TEST_CASE("two ranks may have more data in their messages, and most where these are added", "[runtime][unit]") {
  CHECK(FarBoard::most_data_bytes(3, Kind::kAllreduce) == FarBoard::most_data_bytes(3, Kind::kAllgather));
  CHECK(FarBoard::most_data_bytes(2, Kind::kAllgather) > 2 * FarBoard::most_data_bytes(3, Kind::kAllgather));
  CHECK(FarBoard::most_data_bytes(2, Kind::kAllreduce) > 2 * FarBoard::most_data_bytes(2, Kind::kAllgather));
  CHECK(FarBoard::most_bytes(2) == FarBoard::most_data_bytes(2, Kind::kAllreduce));
}
