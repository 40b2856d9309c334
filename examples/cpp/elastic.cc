// Fits a line to points, and goes on when ranks are lost or come:
//
//     runjob -np 3 --min-np 2 build/example/elastic [steps [process step]]
//
// With a process and a step, the process of that number kills itself in that step, so that there is something to see.
// Another one is started in its place and gets the weights of the others.

#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <runjob/elastic.hpp>
#include <string>
#include <thread>
#include <vector>

namespace {

constexpr int kPoints = 1000, kBatch = 60;
constexpr double kRate = 0.2;

struct Options {
  int steps = 400;
  bool is_lost = false;  // this process kills itself
  int lost_at = 0;
};

/// The point with this number: y = 3 x - 1.
double x_of(int point) {
  return static_cast<double>(point % kPoints) / kPoints * 2 - 1;
}

void train(const Options& options) {
  std::vector<double> weights(2);
  int step = 0;
  std::string history;  // the number of ranks, whenever it changes

  runjob::elastic::State state;
  state.add(std::span(weights)).add(step);
  state.add(
      [&] {
        const auto bytes = std::as_bytes(std::span(history));
        return std::vector<std::byte>(bytes.begin(), bytes.end());
      },
      [&](std::span<const std::byte> bytes) {
        history.assign(reinterpret_cast<const char*>(bytes.data()), bytes.size());
      });
  state.on_reset([&] { history += " " + std::to_string(runjob::Communicator().size()); });

  const bool finished = runjob::elastic::run(state, [&] {
    const runjob::Communicator world;
    while (step < options.steps) {
      if (options.is_lost && step == options.lost_at) std::raise(SIGKILL);
      std::vector<double> gradient(2);
      for (int i = world.rank(); i < kBatch; i += world.size()) {
        const double x = x_of(step * kBatch + i * 17);
        const double error = weights[0] * x + weights[1] - (3 * x - 1);
        gradient[0] += error * x;
        gradient[1] += error;
      }
      world.allreduce(std::span(gradient), "gradient");
      for (std::size_t i = 0; i < 2; ++i) weights[i] -= kRate / kBatch * gradient[i];
      std::this_thread::sleep_for(std::chrono::milliseconds(2));  // a step that takes some time
      ++step;
      state.commit();
    }
  });
  if (!finished) return;
  const runjob::Communicator world;
  std::printf("rank %d of %d: step %d, y = %.4f x %+.4f, resized to:%s\n", world.rank(), world.size(), step, weights[0],
              weights[1], history.c_str());
}

Options options_of(int argc, char** argv) {
  Options options;
  if (argc > 1) options.steps = std::atoi(argv[1]);
  if (argc != 1 && argc != 2 && argc != 4) throw std::invalid_argument("usage: elastic [steps [process step]]");
  if (argc == 4) {
    const char* number = std::getenv("RUNJOB_PROCESS_NUMBER");
    options.is_lost = number != nullptr && std::string(argv[2]) == number;
    options.lost_at = std::atoi(argv[3]);
  }
  return options;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    const Options options = options_of(argc, argv);
    runjob::init();
    train(options);
    runjob::shutdown();
  } catch (const std::exception& error) {
    std::fprintf(stderr, "elastic: %s\n", error.what());
    return 1;
  }
  return 0;
}
