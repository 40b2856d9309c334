/// Feeds any bytes to what reads the documents about a change of an elastic job. The first byte chooses: 'r' a request of
/// `runjob resize`, 'a' the launcher's answer, 's' the name of a socket; anything else is a notice to the ranks.
#include <string>

#include "base/error.hpp"
#include "launcher/resize/resize_request.hpp"
#include "rendezvous/protocol.hpp"
#include "tests/fuzz.hpp"

using namespace runjob;

namespace {

void check_request(const std::string& text) {
  const ResizeRequest request = resize_request_from_json(text);
  require((request.ranks ? 1 : 0) + (request.add.empty() ? 0 : 1) + (request.remove.empty() ? 0 : 1) == 1);
  require(resize_request_from_json(to_json(request)) == request);
}

void check_answer(const std::string& text) {
  const ResizeReply reply = resize_reply_from_json(text);
  require(resize_reply_from_json(to_json(reply)) == reply);
}

void check_name(const std::string& file) {
  const auto name = parse_resize_socket_name(file);
  if (!name) return;
  require(!name->job_id.empty() && name->launcher > 0);
  const auto again = parse_resize_socket_name(resize_socket_name(*name));
  require(again && again->job_id == name->job_id && again->launcher == name->launcher);
}

void check_notice(const std::string& text) {
  const rendezvous::Notice notice = rendezvous::notice_from_json(text);
  require(rendezvous::notice_from_json(to_json(notice)) == notice);
}

}  // namespace

void fuzz(std::string_view input) {
  if (input.empty()) return;
  const std::string text(input.substr(1));
  try {
    switch (input[0]) {
      case 'r':
        check_request(text);
        break;
      case 'a':
        check_answer(text);
        break;
      case 's':
        check_name(text);
        break;
      default:
        check_notice(text);
    }
  } catch (const Error& error) {
    require(error.code() == Errc::kProtocol);
  }
}
