#include "launcher/supervision/stack_report.hpp"

#include "tests/catch.hpp"

using namespace runjob;
using Frames = std::vector<std::string>;

TEST_CASE("the main thread's frames are read from eu-stack", "[unit]") {
  CHECK(native_frames("PID 12015 - process\n"
                      "TID 12015:\n"
                      "#0  0x00007f1f624ed545 clock_nanosleep@GLIBC_2.2.5\n"
                      "#10 0x00007f1f62915ada gloo::Pair::wait(int)\n"
                      "TID 12017:\n"
                      "#0  0x00007f1f624ed545 poll\n"
                      "eu-stack: dwfl_thread_getframes tid 12017: no matching address\n") ==
        Frames{"clock_nanosleep@GLIBC_2.2.5", "gloo::Pair::wait(int)"});
  CHECK(native_frames("").empty());
}

TEST_CASE("the main thread's frames are read from gdb, whose last one it is", "[unit]") {
  CHECK(native_frames("[New LWP 12017]\n"
                      "0x00007f1f624ed545 in poll () from /lib/libc.so.6\n\n"
                      "Thread 2 (Thread 0x7f1f6213d6c0 (LWP 12017) \"python\"):\n"
                      "#0  0x00007f1f624ed545 in poll () from /lib/libc.so.6\n\n"
                      "Thread 1 (Thread 0x7f1f62c97b80 (LWP 12015) \"python\"):\n"
                      "#0  0x00007f1f624ed545 in __GI___clock_nanosleep (clock_id=1, flags=1) at clock_nanosleep.c:48\n"
                      "#1  std::function<void (int)>::operator()(int) const (this=0x7ff) at /usr/include/f.h:9\n"
                      "#2  0x0000565184984081 in _start ()\n"
                      "[Inferior 1 (process 12015) detached]\n") ==
        Frames{"__GI___clock_nanosleep", "std::function<void (int)>::operator()(int) const", "_start"});
}

TEST_CASE("Python's stack is taken out of what a rank wrote", "[unit]") {
  const auto [rest, frames] = take_python_frames(
      "step 12\n"
      "Fatal Python error: Aborted\n\n"
      "Thread 0x00007f1f6213d6c0 (most recent call first):\n"
      "  File \"threading.py\", line 982 in run\n\n"
      "Current thread 0x00007f1f62c97b80 (most recent call first):\n"
      "  File \"train.py\", line 2 in odd\n"
      "  File \"train.py\", line 5 in <module>\n\n"
      "Extension modules: numpy.core._multiarray_umath (total: 1)\n");
  CHECK(rest == "step 12\n");
  CHECK(frames == Frames{"File \"train.py\", line 2 in odd", "File \"train.py\", line 5 in <module>"});
  // The signal was handled by a thread that Python does not know; the threads are listed from the newest on.
  const auto of_main = take_python_frames(
      "Fatal Python error: Aborted\n\n"
      "Thread 0x00007f1f6213d6c0 (most recent call first):\n"
      "  File \"threading.py\", line 982 in run\n\n"
      "Thread 0x00007f1f62c97b80 (most recent call first):\n"
      "  File \"train.py\", line 2 in odd\n\n"
      "Extension modules: numpy.core._multiarray_umath (total: 1)\n");
  CHECK(of_main.second == Frames{"File \"train.py\", line 2 in odd"});
  CHECK(take_python_frames("no stack\n") == std::pair(std::string("no stack\n"), Frames{}));
}

namespace {

Allocation four_ranks() {
  return allocate({{"s1", 2, "", {}, "", {}}, {"s2", 2, "", {}, "", {}}}, std::nullopt);
}

RankStack at(int rank, const std::string& python, const std::string& native = "") {
  RankStack stack;
  stack.rank = rank;
  if (!python.empty()) stack.python = {python};
  if (!native.empty()) stack.native = {native};
  if (native.empty()) stack.missing = "there is neither eu-stack nor gdb";
  return stack;
}

}  // namespace

TEST_CASE("ranks at one place are told together, and the one that differs by name", "[unit]") {
  CHECK(stack_report(four_ranks(), {at(0, "f", "poll"), at(1, "f", "read"), at(2, "g", "poll"), at(3, "f", "poll")}) ==
        "the ranks were at different places:\n"
        "  ranks 0, 1, 3:\n"
        "    Python, innermost first:\n"
        "      f\n"
        "    native, innermost first:\n"
        "      poll\n"
        "  rank 2 on s2 differs:\n"
        "    Python, innermost first:\n"
        "      g\n"
        "    native, innermost first:\n"
        "      poll");
}

TEST_CASE("without a majority none differs, and without a tool the reason is told", "[unit]") {
  CHECK(stack_report(four_ranks(), {at(0, "", "poll"), at(1, "")}) ==
        "the ranks were at different places:\n"
        "  rank 0 on s1:\n"
        "    native, innermost first:\n"
        "      poll\n"
        "  rank 1 on s1:\n"
        "    no native stack: there is neither eu-stack nor gdb");
  CHECK_THAT(stack_report(four_ranks(), {at(2, "f"), at(3, "f")}),
             ContainsSubstring("all ranks were at the same place:\n  ranks 2, 3 on s2:\n"));
  CHECK(stack_report(four_ranks(), {}).empty());
}

TEST_CASE("that a Python stack is missing is told", "[unit]") {
  RankStack stack = at(1, "");
  stack.missing_python = "its program has printed none in time";
  CHECK(stack_report(four_ranks(), {stack}) ==
        "all ranks were at the same place:\n"
        "  rank 1 on s1:\n"
        "    no Python stack: its program has printed none in time\n"
        "    no native stack: there is neither eu-stack nor gdb");
}

TEST_CASE("the user's frames come before those of the libraries that they have called", "[unit]") {
  RankStack stack = at(0, "x", "poll");
  stack.python = {"File \"/v/lib/python3.11/site-packages/runjob/job.py\", line 50 in wait",
                  "File \"/usr/lib/python3/dist-packages/torch/optim.py\", line 9 in step",
                  "File \"train.py\", line 12 in step", "File \"/v/lib/python3.11/contextlib.py\", line 3 in inner",
                  "File \"train.py\", line 50 in <module>"};
  stack.native.assign(10, "poll");
  CHECK(stack_report(four_ranks(), {stack}) ==
        "all ranks were at the same place:\n"
        "  rank 0 on s1:\n"
        "    Python, innermost first:\n"
        "      File \"train.py\", line 12 in step\n"
        "      File \"/v/lib/python3.11/contextlib.py\", line 3 in inner\n"
        "      File \"train.py\", line 50 in <module>\n"
        "    in libraries called from there, innermost first:\n"
        "      File \"/v/lib/python3.11/site-packages/runjob/job.py\", line 50 in wait\n"
        "      File \"/usr/lib/python3/dist-packages/torch/optim.py\", line 9 in step\n"
        "    native, innermost first:\n"
        "      poll\n      poll\n      poll\n      poll\n      poll\n      poll\n      poll\n      poll\n"
        "      ... and 2 more");
  stack.python.resize(2);
  CHECK_THAT(stack_report(four_ranks(), {stack}), ContainsSubstring("    Python, innermost first:\n      File \"/v/"));
}

TEST_CASE("a deep stack is cut", "[unit]") {
  RankStack deep = at(0, "");
  deep.native.assign(25, "f");
  CHECK_THAT(stack_report(four_ranks(), {deep}), ContainsSubstring("      ... and 5 more"));
}
