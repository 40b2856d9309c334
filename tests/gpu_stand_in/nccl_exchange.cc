#include "tests/gpu_stand_in/nccl_exchange.hpp"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <fcntl.h>
#include <stdexcept>
#include <sys/mman.h>
#include <thread>
#include <unistd.h>

#include "tests/gpu_stand_in/settings.hpp"

namespace stand_in {
namespace {

void pause() {
  std::this_thread::sleep_for(std::chrono::microseconds(20));
}

/// True if every part before `index` with the same peer has moved.
bool is_next(const std::vector<Exchange::Part>& parts, std::size_t index) {
  for (std::size_t i = 0; i < index; ++i) {
    if (parts[i].peer == parts[index].peer && parts[i].moved < parts[i].bytes) return false;
  }
  return true;
}

bool all_moved(const std::vector<Exchange::Part>& parts) {
  return std::all_of(parts.begin(), parts.end(), [](const auto& part) { return part.moved == part.bytes; });
}

}  // namespace

Exchange::Exchange(const std::string& file, int rank, int size)
    : file_(stand_in::text("RUNJOB_STAND_IN_FOLDER", "/dev/shm") + "/runjob-stand-in-" + file),
      rank_(rank),
      size_(size) {
  bytes_ = sizeof(Shared) + sizeof(Channel) * static_cast<std::size_t>(size) * static_cast<std::size_t>(size);
  const int descriptor = ::open(file_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (descriptor < 0 || ::ftruncate(descriptor, static_cast<off_t>(bytes_)) != 0)
    throw std::runtime_error("the file of a communicator of the stand-in");
  void* const memory = ::mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
  ::close(descriptor);
  if (memory == MAP_FAILED) throw std::runtime_error("the memory of a communicator of the stand-in");
  shared_ = static_cast<Shared*>(memory);  // the file's zero bytes are its initial state
}

Exchange::~Exchange() {
  ::munmap(shared_, bytes_);
  ::unlink(file_.c_str());
}

bool Exchange::meet() {
  shared_->arrived.fetch_add(1);
  while (shared_->arrived.load() < static_cast<std::uint32_t>(size_)) {
    if (is_stopped_.load()) return false;
    pause();
  }
  ::unlink(file_.c_str());
  return true;
}

bool Exchange::move(std::vector<Part> sends, std::vector<Part> receives) {
  while (!all_moved(sends) || !all_moved(receives)) {
    const bool has_sent = send_some(sends), has_received = receive_some(receives);
    if (is_stopped_.load()) return false;
    if (!has_sent && !has_received) pause();
  }
  return true;
}

bool Exchange::send_some(std::vector<Part>& parts) {
  bool has_moved = false;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    Part& part = parts[i];
    if (part.moved == part.bytes || !is_next(parts, i)) continue;
    Channel& to = channel(rank_, part.peer);
    if (to.written.load() != to.read.load()) continue;
    const std::size_t piece = std::min(kPiece, part.bytes - part.moved);
    std::memcpy(to.data, part.memory + part.moved, piece);
    to.bytes.store(piece);
    to.written.fetch_add(1);
    part.moved += piece;
    has_moved = true;
  }
  return has_moved;
}

bool Exchange::receive_some(std::vector<Part>& parts) {
  bool has_moved = false;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    Part& part = parts[i];
    if (part.moved == part.bytes || !is_next(parts, i)) continue;
    Channel& from = channel(part.peer, rank_);
    if (from.written.load() == from.read.load()) continue;
    const std::size_t piece = std::min<std::size_t>(from.bytes.load(), part.bytes - part.moved);
    std::memcpy(part.memory + part.moved, from.data, piece);
    from.read.fetch_add(1);
    part.moved += piece;
    has_moved = true;
  }
  return has_moved;
}

}  // namespace stand_in
