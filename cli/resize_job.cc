#include "cli/resize_job.hpp"

#include <filesystem>
#include <sys/stat.h>
#include <unistd.h>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/error.hpp"
#include "base/parse.hpp"
#include "base/screen_text.hpp"
#include "hostfile/allocation.hpp"
#include "launcher/resize/resize_request.hpp"

namespace runjob {
namespace {

constexpr const char* kUsage = "runjob resize JOB -np N | --add HOSTS | --remove HOSTS";

ResizeRequest request_of(const std::vector<std::string>& arguments) {
  if (arguments.size() != 4) throw Error(Errc::kUsage, fmt::format("resize: write {}", kUsage));
  const std::string& option = arguments[2];
  const std::string& value = arguments[3];
  ResizeRequest request;
  if (option == "-np" || option == "-n" || option == "--num-proc") {
    request.ranks = static_cast<int>(parse_integer(value, option, 1, kMaxRanks));
  } else if (option == "--add") {
    request.add = value;
  } else if (option == "--remove") {
    request.remove = value;
  } else {
    throw Error(Errc::kUsage, fmt::format("resize: unknown option {}; write {}", option, kUsage));
  }
  if (value.empty()) throw Error(Errc::kUsage, fmt::format("resize: {} needs a value", option));
  return request;
}

/// Another user's launcher has this process number.
bool is_of_another_user(const std::string& job) {
  struct stat status {};
  const bool is_number = job.find_first_not_of("0123456789") == std::string::npos;
  return is_number && ::stat(fmt::format("/proc/{}", job).c_str(), &status) == 0 && status.st_uid != ::getuid();
}

std::string find_socket(const std::string& job) {
  const std::string folder = resize_folder();
  check_resize_folder(folder);
  std::vector<std::string> running;
  std::error_code missing;
  for (const auto& entry : std::filesystem::directory_iterator(folder, missing)) {
    const auto name = parse_resize_socket_name(entry.path().filename());
    if (!name) continue;
    if (name->job_id == job || std::to_string(name->launcher) == job) return entry.path();
    running.push_back(name->job_id);
  }
  if (is_of_another_user(job))
    throw Error(Errc::kUsage, fmt::format("resize: process {} belongs to another user", job));
  throw Error(Errc::kUsage,
              fmt::format("resize: no elastic job {} of this user runs on this host; {}", job,
                          running.empty() ? "none does" : fmt::format("these do: {}", fmt::join(running, ", "))));
}

}  // namespace

int resize_job(const std::vector<std::string>& arguments, const std::function<void(const std::string&)>& print) {
  const ResizeRequest request = request_of(arguments);
  const std::string socket = find_socket(arguments[1]);
  ResizeReply reply;
  try {
    reply = ask_launcher(socket, request);
  } catch (const Error& error) {
    if (error.code() != Errc::kConnect) throw;
    throw Error(Errc::kUsage, fmt::format("resize: job {} has ended ({})", arguments[1], error.what()));
  }
  if (!reply.ok) throw Error(Errc::kUsage, fmt::format("resize: {}", reply.text));
  print(one_line(reply.text) + "\n");
  return 0;
}

}  // namespace runjob
