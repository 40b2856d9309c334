// Trains a classifier on data spread over the ranks: each computes the gradients of its share of a batch, and a grouped
// allreduce averages them.
//
//     runjob -np 2 build/example/train [steps]
//
// The points lie around three centres and come from a fixed seed: the printed loss is the same, but for rounding, on
// any number of ranks.

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <random>
#include <runjob/grouped.hpp>
#include <vector>

namespace {

constexpr std::size_t kClasses = 3, kFeatures = 2, kPoints = 1200, kBatch = 240;
constexpr double kLearningRate = 0.5;

struct Point {
  std::array<double, kFeatures> x;
  std::size_t label;
};

/// What is trained, and gradients for it: score of a class = weights * x + bias.
struct Parameters {
  std::vector<double> weights = std::vector<double>(kClasses * kFeatures);
  std::vector<double> biases = std::vector<double>(kClasses);
};

/// The same points on all ranks. Only std::mt19937's numbers are the same everywhere, not what distributions make of
/// them.
std::vector<Point> make_points() {
  constexpr std::array<std::array<double, kFeatures>, kClasses> kCentres = {{{0, 1}, {1, -1}, {-1, -1}}};
  std::mt19937 generator(1);
  const auto noise = [&] { return static_cast<double>(generator()) / std::mt19937::max() * 2.4 - 1.2; };
  std::vector<Point> points;
  for (std::size_t i = 0; i < kPoints; ++i) {
    const std::size_t label = i % kClasses;
    points.push_back({{kCentres[label][0] + noise(), kCentres[label][1] + noise()}, label});
  }
  return points;
}

/// The classes' probabilities.
std::array<double, kClasses> predict(const Parameters& model, const Point& point) {
  std::array<double, kClasses> scores{};
  for (std::size_t c = 0; c < kClasses; ++c) {
    scores[c] = model.biases[c];
    for (std::size_t f = 0; f < kFeatures; ++f) scores[c] += model.weights[c * kFeatures + f] * point.x[f];
  }
  const double highest = *std::max_element(scores.begin(), scores.end());
  double sum = 0;
  for (double& score : scores) sum += score = std::exp(score - highest);
  for (double& score : scores) score /= sum;
  return scores;
}

/// Adds a point's gradients; returns its loss.
double add_gradients(const Parameters& model, const Point& point, Parameters& gradients) {
  const std::array<double, kClasses> probabilities = predict(model, point);
  for (std::size_t c = 0; c < kClasses; ++c) {
    const double error = probabilities[c] - (c == point.label ? 1 : 0);
    gradients.biases[c] += error;
    for (std::size_t f = 0; f < kFeatures; ++f) gradients.weights[c * kFeatures + f] += error * point.x[f];
  }
  return -std::log(probabilities[point.label]);
}

void descend(std::vector<double>& values, const std::vector<double>& gradients, double factor) {
  for (std::size_t i = 0; i < values.size(); ++i) values[i] -= factor * gradients[i];
}

/// One step on this rank's points of a batch. Returns the loss over the whole batch.
double step(const runjob::Communicator& world, Parameters& model, const std::vector<Point>& points,
            std::size_t number) {
  const std::size_t begin = number * kBatch % kPoints;
  const auto rank = static_cast<std::size_t>(world.rank()), size = static_cast<std::size_t>(world.size());
  Parameters gradients;
  std::vector<double> loss(1);
  for (std::size_t i = begin + rank; i < begin + kBatch; i += size)
    loss[0] += add_gradients(model, points[i], gradients);

  // One operation for all of them: it runs when all ranks have submitted it.
  runjob::TensorGroup group;
  group.add(std::span(gradients.weights)).add(std::span(gradients.biases)).add(std::span(loss));
  runjob::grouped_allreduce(group, "gradients", runjob::ReduceOp::sum);

  descend(model.weights, gradients.weights, kLearningRate / kBatch);
  descend(model.biases, gradients.biases, kLearningRate / kBatch);
  return loss[0] / kBatch;
}

void train(std::size_t steps) {
  const runjob::Communicator world;
  const std::vector<Point> points = make_points();
  Parameters model;
  double loss = 0;
  for (std::size_t number = 0; number < steps; ++number) {
    loss = step(world, model, points, number);
    if (world.rank() == 0 && number % 20 == 0) std::printf("step %3zu: loss %.6f\n", number, loss);
  }
  const auto right = std::count_if(points.begin(), points.end(), [&](const Point& point) {
    const std::array<double, kClasses> probabilities = predict(model, point);
    return std::max_element(probabilities.begin(), probabilities.end()) - probabilities.begin() ==
           static_cast<std::ptrdiff_t>(point.label);
  });
  std::printf("rank %d of %d: loss %.6f, accuracy %.4f\n", world.rank(), world.size(), loss,
              static_cast<double>(right) / kPoints);
}

}  // namespace

int main(int argc, char** argv) {
  try {
    const long steps = argc > 1 ? std::strtol(argv[1], nullptr, 10) : 100;
    if (steps < 1) throw std::invalid_argument("usage: train [steps], at least 1");
    runjob::init();
    train(static_cast<std::size_t>(steps));
    runjob::shutdown();
  } catch (const std::exception& error) {
    std::fprintf(stderr, "train: %s\n", error.what());
    return 1;
  }
  return 0;
}
