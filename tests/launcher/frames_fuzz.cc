/// Feeds any bytes to the readers of an agent's channel and of a step's messages. The first byte chooses the reader:
/// 'f' gives the rest to the frame parsers of both directions, in pieces whose size is the second byte, and checks that
/// the pieces make no difference; 'm' gives it to each message's decoder, and checks that a message that was decoded is
/// decoded to the same when it is encoded again; 's' does so with the messages of a SLURM step, 'c' with the line that
/// calls an agent; 'p' with a line of SLURM's PMI.
#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.hpp"
#include "launcher/channel/frame.hpp"
#include "launcher/channel/messages.hpp"
#include "launcher/network/probe_messages.hpp"
#include "launcher/sealed_channel/agent_call.hpp"
#include "launcher/srun_task/pmi_names.hpp"
#include "launcher/srun_task/step_messages.hpp"
#include "tests/fuzz.hpp"

using namespace runjob;

namespace {

template <class Call>
bool succeeds(Call call) {
  try {
    call();
    return true;
  } catch (const Error& error) {
    require(*error.what() != '\0');
    return false;
  }
}

/// The frames that a parser finds in the bytes, and its error.
template <FrameType Type>
std::vector<std::string> frames_in(std::string_view bytes, std::size_t piece) {
  FrameParser<Type> parser(256);
  std::vector<std::string> seen;
  const auto remember = [&seen](const FrameHeader<Type>& header, std::string_view payload) {
    require(header.length == payload.size());
    std::string frame;
    append_header(frame, header);
    seen.push_back(frame + std::string(payload));
  };
  try {
    for (; !bytes.empty(); bytes.remove_prefix(std::min(piece, bytes.size())))
      parser.feed(bytes.substr(0, piece), remember);
  } catch (const Error& error) {
    require(error.code() == Errc::kProtocol);
    seen.emplace_back("error");
  }
  return seen;
}

template <FrameType Type>
void check_pieces(std::string_view bytes, std::size_t piece) {
  require(frames_in<Type>(bytes, piece) == frames_in<Type>(bytes, bytes.size() + 1));
}

template <class Message>
void check_message(std::string_view payload) {
  std::string once;
  if (!succeeds([&] { once = encode(decode<Message>(payload)); })) return;
  require(encode(decode<Message>(once)) == once);
}

void check_messages(std::string_view payload) {
  check_message<Hello>(payload);
  check_message<Launch>(payload);
  check_message<Started>(payload);
  check_message<StartFailed>(payload);
  check_message<Exited>(payload);
  check_message<StackTrace>(payload);
  check_message<Credit>(payload);
  check_message<Signal>(payload);
  check_message<End>(payload);
  check_message<RelayedRequest>(payload);
  check_message<RelayedReply>(payload);
  check_message<ProbeListen>(payload);
  check_message<ProbeListening>(payload);
  check_message<ProbeConnect>(payload);
  check_message<ProbeResults>(payload);
}

void check_step(const std::string& text) {
  succeeds(
      [&] { require(encode(parse_step_hello(encode(parse_step_hello(text)))) == encode(parse_step_hello(text))); });
  succeeds([&] { require(encode(parse_step_end(encode(parse_step_end(text)))) == encode(parse_step_end(text))); });
  succeeds([&] { static_cast<void>(parse_step_welcome(text, "n")); });
}

void check_call(std::string_view line) {
  succeeds(
      [&] { require(encode(parse_agent_call(encode(parse_agent_call(line)))) == encode(parse_agent_call(line))); });
}

}  // namespace

void fuzz(std::string_view bytes) {
  if (bytes.size() < 2) return;
  switch (bytes[0]) {
    case 'f':
      check_pieces<ToAgent>(bytes.substr(2), static_cast<unsigned char>(bytes[1]) + 1);
      check_pieces<ToLauncher>(bytes.substr(2), static_cast<unsigned char>(bytes[1]) + 1);
      break;
    case 'm':
      check_messages(bytes.substr(1));
      break;
    case 's':
      check_step(std::string(bytes.substr(1)));
      break;
    case 'c':
      check_call(bytes.substr(1));
      break;
    case 'p':
      for (const char* name : {"cmd", "info", "port", "rc"})
        require(bytes.find(pmi_field(bytes.substr(1), name)) != bytes.npos);
      break;
    default:
      break;
  }
}
