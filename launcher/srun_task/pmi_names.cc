#include "launcher/srun_task/pmi_names.hpp"

#include <cerrno>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <fmt/format.h>

namespace runjob {
namespace {

constexpr std::size_t kMostLineBytes = 4096;
constexpr char kInit[] = "cmd=init pmi_version=1 pmi_subversion=1\n";
constexpr char kFinalize[] = "cmd=finalize\n";

bool is_socket(int descriptor) {
  struct stat status {};
  return descriptor >= 0 && ::fstat(descriptor, &status) == 0 && S_ISSOCK(status.st_mode);
}

}  // namespace

std::unique_ptr<PmiNames> PmiNames::open(int descriptor) {
  if (!is_socket(descriptor)) return nullptr;
  std::unique_ptr<PmiNames> names(new PmiNames(descriptor));
  const std::string answer = names->ask(kInit);
  if (pmi_field(answer, "cmd") == "response_to_init" && pmi_field(answer, "rc") == "0") return names;
  names->descriptor_ = -1;  // another protocol, or nobody
  return nullptr;
}

PmiNames::~PmiNames() {
  if (descriptor_ >= 0) ask(kFinalize);
}

bool PmiNames::publish(std::string_view name, std::string_view value) {
  const std::string answer = ask(fmt::format("cmd=publish_name service={} port={}\n", name, value));
  return pmi_field(answer, "cmd") == "publish_result" && pmi_field(answer, "info") == "ok";
}

std::optional<std::string> PmiNames::look_up(std::string_view name) {
  const std::string answer = ask(fmt::format("cmd=lookup_name service={}\n", name));
  if (pmi_field(answer, "cmd") != "lookup_result" || pmi_field(answer, "info") != "ok") return std::nullopt;
  return pmi_field(answer, "port");
}

/// One line; "" if none comes. Then nothing is asked any more, because a late answer would be taken for the next one.
std::string PmiNames::ask(const std::string& question) {
  if (descriptor_ < 0) return "";
  const auto deadline = std::chrono::steady_clock::now() + kLimit;
  std::string line;
  bool failed =
      ::send(descriptor_, question.data(), question.size(), MSG_NOSIGNAL) != static_cast<ssize_t>(question.size());
  while (!failed && !line.ends_with('\n')) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now());
    pollfd waiting{descriptor_, POLLIN, 0};
    char byte = 0;
    if (left.count() <= 0 || line.size() >= kMostLineBytes) {
      failed = true;
    } else if (::poll(&waiting, 1, static_cast<int>(left.count())) > 0) {
      const ssize_t count = ::recv(descriptor_, &byte, 1, MSG_DONTWAIT);
      if (count == 1) line += byte;
      failed = count == 0 || (count < 0 && errno != EINTR && errno != EAGAIN);
    }
  }
  if (!failed) return line;
  descriptor_ = -1;
  return "";
}

std::string pmi_field(std::string_view line, std::string_view name) {
  while (!line.empty()) {
    const std::size_t end = line.find_first_of(" \n");
    const std::string_view word = line.substr(0, end);
    if (word.size() > name.size() && word.starts_with(name) && word[name.size()] == '=')
      return std::string(word.substr(name.size() + 1));
    line = end == line.npos ? std::string_view() : line.substr(end + 1);
  }
  return "";
}

}  // namespace runjob
