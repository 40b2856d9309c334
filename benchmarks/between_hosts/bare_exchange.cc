/// The bound of what two processes on two hosts can exchange over one TCP connection: both send N bytes and receive N
/// bytes at the same time, without a header, a reduction or an agreement. With `add`, each adds what it receives to what
/// it sends, as float32, piece by piece: an allreduce has this to do as well.
///
///     bare_exchange ADDRESS PORT PIECE_BYTES SEND_BUFFER_BYTES BUDGET_MS BYTES,BYTES,... [add]
///
/// With ADDRESS "listen" the process listens and prints its port; otherwise it connects. The listening process prints a
/// line of JSON for each size, with the median in microseconds. Half of a size's time is for warming up.

#include <algorithm>
#include <arpa/inet.h>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <netinet/tcp.h>
#include <poll.h>
#include <string>
#include <sys/socket.h>
#include <unistd.h>
#include <vector>

namespace {

using Clock = std::chrono::steady_clock;
constexpr std::chrono::microseconds kSpin{50};

[[noreturn]] void fail(const char* what) {
  std::perror(what);
  std::exit(1);
}

int connected_socket(const std::string& address, int port) {
  sockaddr_in place{};
  place.sin_family = AF_INET;
  place.sin_port = htons(static_cast<std::uint16_t>(port));
  const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd < 0) fail("socket");
  if (address != "listen") {
    if (::inet_pton(AF_INET, address.c_str(), &place.sin_addr) != 1) fail("inet_pton");
    if (::connect(fd, reinterpret_cast<sockaddr*>(&place), sizeof place) != 0) fail("connect");
    return fd;
  }
  socklen_t length = sizeof place;
  if (::bind(fd, reinterpret_cast<sockaddr*>(&place), sizeof place) != 0 || ::listen(fd, 1) != 0 ||
      ::getsockname(fd, reinterpret_cast<sockaddr*>(&place), &length) != 0)
    fail("bind");
  std::printf("%d\n", ntohs(place.sin_port));
  std::fflush(stdout);
  const int accepted = ::accept(fd, nullptr, nullptr);
  if (accepted < 0) fail("accept");
  ::close(fd);
  return accepted;
}

/// The bytes of one call, 0 if it would have to wait.
std::size_t moved(ssize_t count, const char* what) {
  if (count > 0) return static_cast<std::size_t>(count);
  if (count < 0 && (errno == EAGAIN || errno == EINTR)) return 0;
  fail(what);
}

/// float32 values that begin with a page: from 1 to 32 bytes after it, AMD's Zen 3 copies from the kernel's pages and to
/// them at a tenth of its speed (docs/developers/measurements.md).
class Values {
 public:
  Values(std::size_t count, float value) : pages_((count + kOfPage - 1) / kOfPage), count_(count) {
    std::fill_n(data(), count, value);
  }
  float* data() { return reinterpret_cast<float*>(pages_.data()); }
  std::size_t size() const { return count_; }

 private:
  static constexpr std::size_t kOfPage = 1024;
  struct alignas(kOfPage * sizeof(float)) Page {
    float values[kOfPage];
  };
  std::vector<Page> pages_;
  std::size_t count_;
};

/// The memory of a process. `sums` is empty if it does not add.
struct Buffers {
  Values out, in, sums;

  char* outgoing() { return reinterpret_cast<char*>(out.data()); }
  char* incoming() { return reinterpret_cast<char*>(in.data()); }
  void add(std::size_t first, std::size_t end) {
    for (std::size_t i = first; i < std::min(end, sums.size()); ++i) sums.data()[i] = out.data()[i] + in.data()[i];
  }
};

void exchange(int fd, Buffers& buffers, std::size_t bytes, std::size_t piece) {
  std::size_t sent = 0, received = 0;
  Clock::time_point idle_since{};
  while (sent < bytes || received < bytes) {
    std::size_t progress = 0;
    if (sent < bytes) {
      const auto count =
          ::send(fd, buffers.outgoing() + sent, std::min(piece, bytes - sent), MSG_DONTWAIT | MSG_NOSIGNAL);
      progress += moved(count, "send");
      sent += progress;
    }
    if (received < bytes) {
      const auto room = std::min(piece, bytes - received);
      const std::size_t count = moved(::recv(fd, buffers.incoming() + received, room, MSG_DONTWAIT), "recv");
      buffers.add(received / sizeof(float), (received + count) / sizeof(float));
      received += count;
      progress += count;
    }
    if (progress > 0) {
      idle_since = {};
      continue;
    }
    const auto now = Clock::now();
    if (idle_since == Clock::time_point{}) idle_since = now;
    if (now - idle_since < kSpin) continue;
    pollfd event{fd, static_cast<short>((sent < bytes ? POLLOUT : 0) | (received < bytes ? POLLIN : 0)), 0};
    ::poll(&event, 1, -1);
  }
}

/// The median of the second half, in microseconds. The listening process decides when to stop: its last byte is 1.
double measure(int fd, std::size_t bytes, std::size_t piece, double budget_ms, bool decides, bool adds) {
  const std::size_t count = (bytes + sizeof(float) - 1) / sizeof(float);
  Buffers buffers{Values(count, 1), Values(count, 0), Values(adds ? count : 0, 0)};
  std::vector<double> times_us;
  const auto begin = Clock::now();
  for (bool is_last = false; !is_last;) {
    const bool ends =
        decides && times_us.size() >= 8 && Clock::now() - begin > std::chrono::duration<double, std::milli>(budget_ms);
    buffers.outgoing()[bytes - 1] = ends ? 1 : 0;
    const auto start = Clock::now();
    exchange(fd, buffers, bytes, piece);
    times_us.push_back(std::chrono::duration<double, std::micro>(Clock::now() - start).count());
    is_last = decides ? ends : buffers.incoming()[bytes - 1] == 1;
  }
  const auto half = times_us.begin() + static_cast<std::ptrdiff_t>(times_us.size() / 2);
  const auto median = half + (times_us.end() - half) / 2;
  std::nth_element(half, median, times_us.end());
  return *median;
}

}  // namespace

int main(int count, char** words) {
  const bool adds = count == 8 && std::string(words[7]) == "add";
  if (count != 7 && !adds) {
    std::fprintf(stderr,
                 "usage: bare_exchange ADDRESS|listen PORT PIECE_BYTES SEND_BUFFER_BYTES BUDGET_MS BYTES,... [add]\n");
    return 2;
  }
  const bool listens = std::string(words[1]) == "listen";
  const int fd = connected_socket(words[1], std::atoi(words[2]));
  const int on = 1, send_buffer = std::atoi(words[4]);
  ::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  if (send_buffer > 0) ::setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &send_buffer, sizeof send_buffer);
  for (char* word = std::strtok(words[6], ","); word != nullptr; word = std::strtok(nullptr, ",")) {
    const auto bytes = static_cast<std::size_t>(std::atoll(word));
    const double median =
        measure(fd, bytes, static_cast<std::size_t>(std::atoll(words[3])), std::atof(words[5]), listens, adds);
    if (listens) std::printf("{\"bytes\": %zu, \"us\": %.2f}\n", bytes, median);
  }
  return 0;
}
