/// One rank of a measurement of allreduce between hosts, without the engine: the backends themselves.
///
///     between_hosts_rank BACKEND RANK HOST,HOST,... ADDRESS BYTES:TIMES...
///
/// BACKEND is "hierarchical" or "gloo"; the hosts are numbers, by rank. Prints its address in hexadecimal digits, reads
/// those of all ranks, one a line, and then measures. Rank 0 prints a line of JSON for each size.

#include <chrono>
#include <cstdio>
#include <exception>
#include <iostream>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "runtime/collectives/gloo/gloo_backend.hpp"
#include "runtime/collectives/hierarchical/hierarchical_backend.hpp"
#include "runtime/collectives/tcp/tcp_transport.hpp"

namespace {

using namespace runjob::runtime;
using Clock = std::chrono::steady_clock;

std::string to_hex(const std::string& bytes) {
  std::string text;
  char digits[3];
  for (const char byte : bytes) {
    std::snprintf(digits, sizeof digits, "%02x", static_cast<unsigned char>(byte));
    text += digits;
  }
  return text;
}

std::string from_hex(const std::string& text) {
  std::string bytes;
  for (std::size_t i = 0; i + 1 < text.size(); i += 2)
    bytes += static_cast<char>(std::stoi(text.substr(i, 2), nullptr, 16));
  return bytes;
}

std::unique_ptr<DataBackend> make(const std::string& name, const MeshOptions& options) {
  const auto transport = [](const TransportOptions& between) { return std::make_unique<TcpTransport>(between); };
  const auto flat = [&](const MeshOptions& mesh) {
    return std::make_unique<GlooBackend>(mesh, transport(all_pairs(mesh)));
  };
  if (name == "gloo") return flat(options);
  return std::make_unique<HierarchicalBackend>(options, "", HostParts{transport, flat});
}

/// Seconds of each of `times` allreduces, after as many to warm up as are useful.
std::vector<double> measure(DataBackend& backend, std::size_t bytes, int times) {
  constexpr int kMostWarmUps = 100;
  std::vector<float> values(bytes / sizeof(float), 1);
  const Call call{.kind = Kind::kAllreduce,
                  .dtype = DType::kFloat32,
                  .op = ReduceOp::kAverage,
                  .input = values.data(),
                  .output = values.data(),
                  .count = values.size()};
  std::vector<double> seconds;
  for (int i = -std::min(kMostWarmUps, (times + 1) / 2); i < times; ++i) {
    const Clock::time_point start = Clock::now();
    backend.run(call).throw_if_failed();
    if (i >= 0) seconds.push_back(std::chrono::duration<double>(Clock::now() - start).count());
  }
  return seconds;
}

void print(std::size_t bytes, const std::vector<double>& seconds) {
  std::ostringstream line;
  line << "{\"bytes\": " << bytes << ", \"seconds\": [";
  for (std::size_t i = 0; i < seconds.size(); ++i) line << (i == 0 ? "" : ", ") << seconds[i];
  std::cout << line.str() << "]}" << std::endl;
}

void run(const std::vector<std::string>& words) {
  MeshOptions options;
  options.rank = std::stoi(words.at(1));
  std::istringstream hosts(words.at(2));
  for (std::string host; std::getline(hosts, host, ',');) options.hosts.push_back(std::stoi(host));
  options.size = static_cast<int>(options.hosts.size());
  options.bind_address = words.at(3);
  const std::unique_ptr<DataBackend> backend = make(words.at(0), options);
  std::cout << to_hex(backend->address()) << std::endl;
  std::vector<std::string> addresses;
  for (std::string line; static_cast<int>(addresses.size()) < options.size && std::getline(std::cin, line);)
    addresses.push_back(from_hex(line));
  backend->connect(addresses).throw_if_failed();
  for (std::size_t i = 4; i < words.size(); ++i) {
    const std::size_t colon = words[i].find(':'), bytes = std::stoul(words[i].substr(0, colon));
    const std::vector<double> seconds = measure(*backend, bytes, std::stoi(words[i].substr(colon + 1)));
    if (options.rank == 0) print(bytes, seconds);
  }
  // Nobody closes its connections while another one still measures.
  measure(*backend, sizeof(float), 1);
  std::string rest;
  std::cout << "done" << std::endl;
  std::getline(std::cin, rest);
}

}  // namespace

int main(int argc, char** argv) {
  try {
    run({argv + 1, argv + argc});
    return 0;
  } catch (const std::exception& error) {
    std::cerr << "between_hosts_rank: error: " << error.what() << std::endl;
    return 1;
  }
}
