/// Feeds any bytes to the reader of what a host prints before its agent runs. A reply is about whole lines: what has
/// been read as one stays so when more bytes come, except that an agent may begin to run.
#include <string_view>

#include "base/error.hpp"
#include "launcher/remote/bootstrap_reply.hpp"
#include "tests/fuzz.hpp"

using namespace runjob;

namespace {

void check_text(std::string_view text) {
  require(text.size() <= 400);
  for (const char c : text) require(static_cast<unsigned char>(c) >= ' ' && c != 0x7f);
}

}  // namespace

void fuzz(std::string_view received) {
  using Kind = BootstrapReply::Kind;
  const BootstrapReply reply = read_bootstrap_reply(received);
  const BootstrapReply before = read_bootstrap_reply(received.substr(0, received.size() / 2));
  if (before.kind == Kind::kFailed) require(reply.kind == Kind::kAgent || reply.kind == Kind::kFailed);
  if (before.kind == Kind::kAgent) require(reply.kind == Kind::kAgent);
  if (before.kind == Kind::kMissing) require(reply.kind != Kind::kUnfinished);
  if (reply.kind == Kind::kFailed) check_text(reply.text);
  check_text(quoted(received));
  if (reply.kind != Kind::kMissing) return;
  try {
    check_system(reply.text, "x86_64");
  } catch (const Error& error) {
    require(error.code() == Errc::kConnect);
    require(std::string_view(error.what()).find('\n') == std::string_view::npos);
  }
}
