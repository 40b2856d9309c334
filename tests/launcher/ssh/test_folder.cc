#include "tests/launcher/ssh/test_folder.hpp"

#include <algorithm>
#include <cstdlib>
#include <fcntl.h>
#include <fstream>
#include <sstream>
#include <stdexcept>
#include <sys/wait.h>
#include <unistd.h>

#include "base/unique_handle.hpp"

namespace runjob {

namespace fs = std::filesystem;

TestFolder::TestFolder() {
  char name[] = "/tmp/runjob-ssh-XXXXXX";
  if (::mkdtemp(name) == nullptr) throw std::runtime_error("no temporary folder");
  folder_ = name;
}

TestFolder::~TestFolder() {
  std::error_code ignored;
  fs::remove_all(folder_, ignored);
}

std::string TestFolder::write(const std::string& name, const std::string& text) const {
  const fs::path file = folder_ / name;
  fs::create_directories(file.parent_path());
  std::ofstream(file) << text;
  fs::permissions(file, fs::perms::owner_read | fs::perms::owner_write);
  return file.string();
}

std::string TestFolder::read(const std::string& name) const {
  std::ifstream file(folder_ / name);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

std::string TestFolder::make_key(const std::string& name, std::vector<std::string> options) const {
  fs::create_directories((folder_ / name).parent_path());
  std::vector<std::string> command = {"ssh-keygen", "-q", "-f", path(name), "-C", "test"};
  if (std::find(options.begin(), options.end(), "-N") == options.end()) options.insert(options.end(), {"-N", ""});
  command.insert(command.end(), options.begin(), options.end());
  run_program(command);
  return path(name);
}

std::string run_program(const std::vector<std::string>& command) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) throw std::runtime_error("no pipe");
  const UniqueFd reader(ends[0]);
  UniqueFd writer(ends[1]);
  std::vector<char*> words;
  for (const std::string& word : command) words.push_back(const_cast<char*>(word.c_str()));
  words.push_back(nullptr);
  const pid_t child = ::fork();
  if (child == 0) {
    ::dup2(::open("/dev/null", O_RDONLY | O_CLOEXEC), STDIN_FILENO);
    ::dup2(writer.get(), STDOUT_FILENO);
    ::dup2(writer.get(), STDERR_FILENO);
    ::execvp(words[0], words.data());
    ::_exit(127);
  }
  writer.reset();
  std::string output;
  char buffer[4096];
  for (ssize_t got; (got = ::read(reader.get(), buffer, sizeof buffer)) > 0;)
    output.append(buffer, static_cast<std::size_t>(got));
  int status = 0;
  ::waitpid(child, &status, 0);
  if (status != 0) throw std::runtime_error(command.front() + " failed: " + output);
  return output;
}

}  // namespace runjob
