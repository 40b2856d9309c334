#include "benchmarks/rendezvous/simulated_agent.hpp"

#include <fcntl.h>
#include <utility>

#include <boost/asio/co_spawn.hpp>
#include <fmt/format.h>

#include "base/version.hpp"
#include "rendezvous/protocol.hpp"

namespace runjob::benchmark {
namespace {

namespace asio = boost::asio;

void end_at(const std::exception_ptr& error) {
  if (error) std::rethrow_exception(error);
}

UniqueFd copy_of(const UniqueFd& descriptor) {
  return UniqueFd(::fcntl(descriptor.get(), F_DUPFD_CLOEXEC, 3));
}

}  // namespace

SimulatedAgent::SimulatedAgent(asio::io_context& context, UniqueFd socket, Size size, Progress& progress)
    : context_(context),
      input_(copy_of(socket)),
      channel_(context.get_executor(), std::move(input_), std::move(socket)),
      writer_(context.get_executor()),
      size_(size),
      progress_(progress) {}

void SimulatedAgent::start() {
  asio::co_spawn(context_, writer_.run(channel_), [this](const std::exception_ptr& error) {
    end_at(error);
    if (progress_.agent_left()) context_.stop();  // the end of the process closes all channels
  });
  asio::co_spawn(context_, read_frames(), end_at);
  Hello hello;
  hello.version = kVersion;
  hello.cores = size_.ranks_per_host;
  writer_.send_control(ToLauncher::kHello, -1, encode(hello));
}

asio::awaitable<void> SimulatedAgent::read_frames() {
  const FrameParser<ToAgent>::OnFrame handler = [this](const FrameHeader<ToAgent>& header, std::string_view payload) {
    on_frame(header, payload);
  };
  for (;;) {
    const FrameParser<ToAgent>::Space space = parser_.space();
    const std::size_t bytes = co_await channel_.read_some(asio::mutable_buffer(space.data, space.size));
    if (bytes == 0) co_return;
    parser_.consume(bytes, handler);
  }
}

void SimulatedAgent::on_frame(const FrameHeader<ToAgent>& header, std::string_view payload) {
  if (header.type == ToAgent::kLaunch) on_launch(decode<Launch>(payload));
  if (header.type == ToAgent::kReply) on_reply(decode<RelayedReply>(payload));
}

void SimulatedAgent::on_launch(Launch launch) {
  launch_ = std::move(launch);
  require(std::ssize(launch_.processes) == size_.ranks_per_host, "a host was given another number of ranks");
  for (const LaunchProcess& process : launch_.processes) {
    writer_.send_control(ToLauncher::kStarted, process.number, encode(Started{1000 + process.number, {}, {}}));
    // Reading the answers is the ranks' work, each on its own host; here one does it for all.
    const std::string join = rendezvous::join_reply(process.place, launch_.topology);
    require(process.number != 0 || rendezvous::join_reply_from_json(join).size == size_.ranks(),
            "a join of another job");
    writer_.send_control(ToLauncher::kJoined, process.number, {});
    progress_.rank_joined();
    ask(process.number, fmt::format("/v1/barrier/start?wait=60s&call={}", process.number), {});
  }
}

void SimulatedAgent::ask(int rank, const std::string& target, std::string body) {
  asked_.emplace(next_request_, rank);
  const RelayedRequest request{next_request_++, {"POST", target, std::move(body), rank}};
  writer_.send_control(ToLauncher::kRequest, -1, encode(request));
}

void SimulatedAgent::on_reply(const RelayedReply& message) {
  require(message.response.status == 200, message.response.body.str());
  asked_.erase(message.id);
  if (!gathering_) {
    progress_.rank_passed_barrier();
    if (++passed_barrier_ < size_.ranks_per_host) return;
    gathering_ = true;
    const int leader = launch_.processes.front().number;
    const int host = leader / size_.ranks_per_host;
    return ask(leader, fmt::format("/v1/gather/leaders?wait=60s&call=g&count={}&index={}", size_.hosts, host),
               std::string(kBlobBytes, 'x'));
  }
  const rendezvous::Body& blobs = message.response.body;
  require(launch_.processes.front().number != 0 || std::ssize(rendezvous::decode_blobs(blobs)) == size_.hosts,
          "a gather is not whole");
  require(blobs.size() > static_cast<std::size_t>(size_.hosts) * kBlobBytes, "a gather is not whole");
  progress_.leader_gathered();
  for (const LaunchProcess& process : launch_.processes) {
    for (const Stream stream : {Stream::kStdout, Stream::kStderr}) {
      FrameHeader<ToLauncher> end_of_stream;
      end_of_stream.type = ToLauncher::kOutput;
      end_of_stream.stream = stream;
      end_of_stream.process = process.number;
      writer_.send_bulk(end_of_stream, nullptr, 0);
    }
    writer_.send_control(ToLauncher::kExited, process.number, encode(Exited()));
  }
  FrameHeader<ToLauncher> finished;
  finished.type = ToLauncher::kFinished;
  writer_.send_bulk(finished, nullptr, 0);
  writer_.finish();
}

}  // namespace runjob::benchmark
