#include "launcher/job/call_relay.hpp"

#include <cerrno>
#include <fcntl.h>
#include <limits>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>
#include <utility>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/parse.hpp"
#include "rendezvous/target.hpp"

namespace runjob {
namespace {

using rendezvous::error_response;

constexpr std::string_view kPath = "/v1/call/";

/// So that no process which the launcher starts from now on holds the caller's socket open.
int close_on_exec(int descriptor) {
  if (::fcntl(descriptor, F_SETFD, FD_CLOEXEC) != 0) throw system_error("the call's descriptors are not open", errno);
  return descriptor;
}

void append_number(std::string& out, std::uint32_t number) {
  for (int shift = 0; shift < 32; shift += 8) out.push_back(static_cast<char>(number >> shift & 0xff));
}

std::string record_of(int process, std::string_view block) {
  std::string bytes;
  bytes.reserve(block.size() + 2 * sizeof(std::uint32_t));
  append_number(bytes, static_cast<std::uint32_t>(process));
  append_number(bytes, static_cast<std::uint32_t>(block.size()));
  bytes += block;
  return bytes;
}

}  // namespace

CallRelay::CallRelay(boost::asio::any_io_executor executor, const CallDescriptors& descriptors,
                     std::function<void()> on_caller_gone)
    : on_caller_gone_(std::move(on_caller_gone)),
      function_(close_on_exec(descriptors.function)),
      caller_(executor, close_on_exec(descriptors.caller)) {
  watch_caller();
}

bool CallRelay::takes(const rendezvous::Request& request) {
  return std::string_view(request.target).substr(0, kPath.size()) == kPath;
}

void CallRelay::handle(rendezvous::Request request, rendezvous::Reply reply) {
  try {
    const std::vector<std::string> path = rendezvous::parse_target(request.target).path;
    if (request.method == "GET" && path.size() == 4 && path[2] == "function") return reply(function_block(path[3]));
    if (request.method != "POST" || path.size() != 3 || path[2] != "result")
      return reply(error_response(404, fmt::format("no such request: {} {}", request.method, request.target)));
  } catch (const Error& error) {
    return reply(error_response(400, error.what()));
  }
  if (gone_) return reply(error_response(410, "the process that called runjob.run() is gone"));
  records_.push_back({record_of(request.process, request.body), std::move(reply)});
  if (!waiting_) write_some();
}

rendezvous::Response CallRelay::function_block(const std::string& offset) const {
  const std::int64_t begin = parse_integer(offset, "offset", 0, std::numeric_limits<std::int64_t>::max());
  std::string block(kBlockBytes, '\0');
  ssize_t bytes = -1;
  do bytes = ::pread(function_.get(), block.data(), block.size(), begin);
  while (bytes < 0 && errno == EINTR);
  if (bytes < 0) return error_response(500, system_error("cannot read the function", errno).what());
  block.resize(static_cast<std::size_t>(bytes));
  return {200, "application/octet-stream", std::move(block)};
}

/// It never sends: what there is to read is its end.
void CallRelay::watch_caller() {
  caller_.async_wait(boost::asio::posix::stream_descriptor::wait_read, [this](boost::system::error_code error) {
    if (error) return;
    give_up();
    on_caller_gone_();
  });
}

void CallRelay::write_some() {
  while (!records_.empty() && send_front()) {
  }
  if (gone_) return give_up();
  if (records_.empty()) return;
  waiting_ = true;
  caller_.async_wait(boost::asio::posix::stream_descriptor::wait_write, [this](boost::system::error_code error) {
    waiting_ = false;
    if (!error) write_some();
  });
}

/// Returns true if all of the front record was written. If not, the caller has to read first, or it is gone.
bool CallRelay::send_front() {
  const std::string& bytes = records_.front().bytes;
  while (sent_ < bytes.size()) {
    const ssize_t count =
        ::send(caller_.native_handle(), bytes.data() + sent_, bytes.size() - sent_, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) {
      gone_ = errno != EAGAIN;
      return false;
    }
    sent_ += static_cast<std::size_t>(count);
  }
  const rendezvous::Reply reply = std::move(records_.front().reply);
  records_.pop_front();
  sent_ = 0;
  if (reply) reply({});
  return true;
}

void CallRelay::give_up() {
  gone_ = true;
  for (const Record& record : std::exchange(records_, {})) {
    if (record.reply) record.reply(error_response(410, "the process that called runjob.run() is gone"));
  }
}

void CallRelay::finish(std::string_view verdict) {
  records_.push_back({record_of(-1, verdict), {}});
  while (!gone_ && !records_.empty()) {
    if (send_front()) continue;
    pollfd caller{caller_.native_handle(), POLLOUT, 0};
    ::poll(&caller, 1, -1);
  }
}

}  // namespace runjob
