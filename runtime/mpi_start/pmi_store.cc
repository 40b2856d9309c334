#include "runtime/mpi_start/pmi_store.hpp"

#include <algorithm>
#include <cerrno>
#include <poll.h>
#include <string_view>
#include <sys/socket.h>
#include <sys/stat.h>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/parse.hpp"
#include "runtime/mpi_start/hexadecimal.hpp"

namespace runjob::runtime {
namespace {

/// The deadline of requests that the launcher answers by itself, without another rank.
KeyStore::TimePoint soon() {
  return std::chrono::steady_clock::now() + std::chrono::seconds(30);
}

/// Old launchers read lines of 1024 bytes, whatever limit they announce for values.
constexpr std::size_t kMostPieceBytes = 512;

/// The request that the launcher answers when all ranks have sent it.
constexpr char kFence[] = "barrier_in";

/// The inode of the socket; 0 when the descriptor is not a socket.
ino_t socket_at(int descriptor) {
  struct stat status {};
  return ::fstat(descriptor, &status) == 0 && S_ISSOCK(status.st_mode) ? status.st_ino : 0;
}

std::string key_of(const std::string& key, int rank, std::size_t piece) {
  return fmt::format("{}.{}.{}", key, rank, piece);
}

}  // namespace

PmiStore::PmiStore(const ForeignLauncher& launcher)
    : descriptor_(launcher.pmi_descriptor), rank_(launcher.rank), size_(launcher.size), name_(launcher.name) {
  socket_ = socket_at(descriptor_);
  if (socket_ == 0) {
    throw Error(
        Errc::kConnect,
        fmt::format(
            "init(): {} has started this process, but its socket (PMI_FD={}) is not open here: a program between it "
            "and this one has closed it, or the MPI has ended already; in Python, mpi4py's communicator does as well: "
            "init(comm=MPI.COMM_WORLD)",
            name_, descriptor_));
  }
  ask({"init", {{"pmi_version", "1"}, {"pmi_subversion", "1"}}}, "response_to_init", soon());
  const PmiMessage most = ask({"get_maxes", {}}, "maxes", soon());
  constexpr int kMost = 1 << 20;
  const auto longest_value = static_cast<std::size_t>(parse_integer(most.value("vallen_max"), "vallen_max", 16, kMost));
  most_value_bytes_ = std::min(longest_value - 1, kMostPieceBytes);
  kvsname_ = ask({"get_my_kvsname", {}}, "my_kvsname", soon()).value("kvsname");
}

/// Stores the value in pieces. The first character of each piece is a flag for a further piece.
void PmiStore::put(const std::string& key, const std::string& value) {
  const std::string text = to_hexadecimal(value);
  const std::size_t most = most_value_bytes_ - 1;
  for (std::size_t at = 0, piece = 0; piece == 0 || at < text.size(); at += most, ++piece) {
    const char* follows = at + most < text.size() ? "+" : ".";
    ask({"put",
         {{"kvsname", kvsname_}, {"key", key_of(key, rank_, piece)}, {"value", follows + text.substr(at, most)}}},
        "put_result", soon());
  }
}

void PmiStore::wait_for_all(TimePoint deadline) {
  ask({kFence, {}}, "barrier_out", deadline);
}

std::string PmiStore::get(int rank, const std::string& key, TimePoint deadline) {
  std::string text;
  for (std::size_t piece = 0;; ++piece) {
    const std::string value = get_piece(rank, key, piece, deadline);
    text += value.substr(1);
    if (value.front() == '.') return from_hexadecimal(text);
  }
}

std::optional<std::vector<int>> PmiStore::absent(const std::string& /*key*/, std::chrono::milliseconds /*patience*/) {
  return std::nullopt;
}

void PmiStore::leave() noexcept {
  try {
    constexpr std::chrono::seconds kPatience{1};
    if (is_open()) ask({"finalize", {}}, "finalize_ack", std::chrono::steady_clock::now() + kPatience);
  } catch (const Error&) {  // the launcher is gone or does not answer: there is no receiver
  }
}

bool PmiStore::is_open() const {
  return socket_at(descriptor_) == socket_;
}

std::string PmiStore::get_piece(int rank, const std::string& key, std::size_t piece, TimePoint deadline) {
  const PmiMessage question{"get", {{"kvsname", kvsname_}, {"key", key_of(key, rank, piece)}}};
  const std::string value = ask(question, "get_result", deadline).value("value");
  if (!value.starts_with('+') && !value.starts_with('.')) {
    throw Error(Errc::kProtocol,
                fmt::format("init() over PMI: the value of rank {} under {} is not of runjob", rank, key));
  }
  return value;
}

/// Errors  Error(kTimeout), for a fence without a text; Error(kConnect), Error(kProtocol).
PmiMessage PmiStore::ask(const PmiMessage& question, const char* answer, TimePoint deadline) {
  if (owes_answer_) {
    throw Error(Errc::kAborted, fmt::format("init() over PMI: {} has not answered an earlier request of rank {}; start "
                                            "the job anew",
                                            name_, rank_));
  }
  send(to_text(question) + "\n");
  PmiMessage reply = parse_pmi_message(await_line(question, deadline));
  const std::string status = reply.value("rc");
  if (reply.command != answer || (!status.empty() && status != "0")) {
    throw Error(Errc::kProtocol,
                fmt::format("init() over PMI: {} answers '{}' to '{}'", name_, to_text(reply), to_text(question)));
  }
  return reply;
}

std::string PmiStore::await_line(const PmiMessage& question, TimePoint deadline) {
  try {
    return receive_line(deadline);
  } catch (const Error& error) {
    if (error.code() != Errc::kTimeout) throw;
    owes_answer_ = true;
    if (question.command == kFence) throw;  // its caller knows which ranks are late
    throw Error(Errc::kTimeout, fmt::format("init() over PMI: {} has not answered '{}' of rank {} in time", name_,
                                            to_text(question), rank_));
  }
}

void PmiStore::send(const std::string& line) {
  for (std::size_t sent = 0; sent < line.size();) {
    const ssize_t count = ::send(descriptor_, line.data() + sent, line.size() - sent, MSG_NOSIGNAL);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0)
      throw Error(Errc::kConnect, system_error(fmt::format("init() over PMI: telling {}", name_), errno).what());
    sent += static_cast<std::size_t>(count);
  }
}

/// Reads no byte beyond the line, because the next bytes may be for another user of the socket.
std::string PmiStore::receive_line(TimePoint deadline) {
  constexpr std::size_t kMostBytes = 64u << 10;
  std::string line;
  while (line.size() < kMostBytes) {
    wait_for_bytes(deadline);
    char bytes[1024];
    const ssize_t seen = ::recv(descriptor_, bytes, sizeof bytes, MSG_PEEK);
    if (seen < 0 && errno == EINTR) continue;
    if (seen < 0)
      throw Error(Errc::kConnect, system_error(fmt::format("init() over PMI: hearing {}", name_), errno).what());
    if (seen == 0) {
      throw Error(Errc::kConnect,
                  fmt::format("init() over PMI: {} has closed the connection; another rank may have failed", name_));
    }
    const std::string_view found(bytes, static_cast<std::size_t>(seen));
    const std::size_t end = found.find('\n');
    const std::size_t count = end == found.npos ? found.size() : end + 1;
    if (::recv(descriptor_, bytes, count, 0) != static_cast<ssize_t>(count)) {
      throw Error(Errc::kConnect, fmt::format("init() over PMI: somebody else reads what {} says", name_));
    }
    line += found.substr(0, std::min(end, count));
    if (end != found.npos) return line;
  }
  throw Error(Errc::kProtocol, fmt::format("init() over PMI: {} sends a line of over {} bytes", name_, kMostBytes));
}

/// Errors  Error(kTimeout) without a text, Error(kConnect).
void PmiStore::wait_for_bytes(TimePoint deadline) const {
  for (;;) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now());
    pollfd waiting{descriptor_, POLLIN, 0};
    const int ready = ::poll(&waiting, 1, static_cast<int>(std::clamp<std::int64_t>(left.count(), 0, 1 << 30)));
    if (ready > 0) return;
    if (ready == 0) throw Error(Errc::kTimeout, "");
    if (errno != EINTR)
      throw Error(Errc::kConnect, system_error(fmt::format("init() over PMI: hearing {}", name_), errno).what());
  }
}

}  // namespace runjob::runtime
