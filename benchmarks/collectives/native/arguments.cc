#include "benchmarks/collectives/native/arguments.hpp"

#include <array>
#include <charconv>
#include <stdexcept>
#include <string_view>

namespace runjob::benchmark {
namespace {

constexpr std::array<const char*, 6> kOperations = {"allreduce",     "allgather", "broadcast",
                                                    "reducescatter", "alltoall",  "barrier"};
constexpr std::array<const char*, 3> kDTypes = {"float32", "float16", "bfloat16"};
constexpr std::array<const char*, 2> kModes = {"blocking", "asynchronous"};
constexpr std::array<const char*, 2> kMemories = {"ordinary", "symmetric"};

template <class Enum, std::size_t count>
Enum parse_name(const std::array<const char*, count>& names, std::string_view option, std::string_view value) {
  for (std::size_t i = 0; i < count; ++i) {
    if (value == names[i]) return static_cast<Enum>(i);
  }
  throw std::invalid_argument(std::string(option) + ": '" + std::string(value) + "' is not known");
}

long parse_number(std::string_view option, std::string_view value) {
  long number = 0;
  const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), number);
  if (error != std::errc() || end != value.data() + value.size() || number < 0) {
    throw std::invalid_argument(std::string(option) + ": '" + std::string(value) + "' is not a number");
  }
  return number;
}

std::vector<std::size_t> parse_list(std::string_view option, std::string_view value) {
  std::vector<std::size_t> numbers;
  while (!value.empty()) {
    const std::size_t comma = value.find(',');
    numbers.push_back(static_cast<std::size_t>(parse_number(option, value.substr(0, comma))));
    value.remove_prefix(comma == std::string_view::npos ? value.size() : comma + 1);
  }
  return numbers;
}

std::vector<Size> sizes_of(const std::vector<std::size_t>& bytes, const std::vector<std::size_t>& in_flight) {
  if (bytes.empty()) throw std::invalid_argument("--bytes is missing");
  if (!in_flight.empty() && in_flight.size() != bytes.size()) {
    throw std::invalid_argument("--in-flight has another number of entries than --bytes");
  }
  std::vector<Size> sizes;
  for (std::size_t i = 0; i < bytes.size(); ++i) sizes.push_back({bytes[i], in_flight.empty() ? 1 : in_flight[i]});
  return sizes;
}

}  // namespace

Arguments parse_arguments(int argc, char** argv) {
  Arguments arguments;
  std::vector<std::size_t> bytes;
  std::vector<std::size_t> in_flight;
  for (int i = 1; i < argc; i += 2) {
    const std::string_view option = argv[i];
    if (i + 1 == argc) throw std::invalid_argument(std::string(option) + " has no value");
    const std::string_view value = argv[i + 1];
    if (option == "--op") {
      arguments.operation = parse_name<Operation>(kOperations, option, value);
    } else if (option == "--dtype") {
      arguments.dtype = parse_name<DType>(kDTypes, option, value);
    } else if (option == "--mode") {
      arguments.mode = parse_name<Mode>(kModes, option, value);
    } else if (option == "--memory") {
      arguments.memory = parse_name<Memory>(kMemories, option, value);
    } else if (option == "--bytes") {
      bytes = parse_list(option, value);
    } else if (option == "--in-flight") {
      in_flight = parse_list(option, value);
    } else if (option == "--np") {
      arguments.np = static_cast<int>(parse_number(option, value));
    } else if (option == "--budget-ms") {
      arguments.budget_ms = static_cast<double>(parse_number(option, value));
    } else if (option == "--min-iterations") {
      arguments.min_iterations = parse_number(option, value);
    } else if (option == "--max-iterations") {
      arguments.max_iterations = parse_number(option, value);
    } else {
      throw std::invalid_argument("unknown argument " + std::string(option));
    }
  }
  arguments.sizes = sizes_of(bytes, in_flight);
  return arguments;
}

const char* name_of(Operation operation) {
  return kOperations[static_cast<std::size_t>(operation)];
}

const char* name_of(DType dtype) {
  return kDTypes[static_cast<std::size_t>(dtype)];
}

const char* name_of(Mode mode) {
  return kModes[static_cast<std::size_t>(mode)];
}

}  // namespace runjob::benchmark
