#include "launcher/ssh/ssh_session.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "base/error.hpp"
#include "launcher/ssh/ssh_program_needed.hpp"

namespace runjob {
namespace {

constexpr int kRsaSha2Version = 0x010b00;

/// Once in a process. OpenSSL initialises itself; libssh2's own way would load all of its engines.
void initialize_library() {
  static const int result = libssh2_init(LIBSSH2_INIT_NO_CRYPTO);
  if (result != 0) throw Error(Errc::kSystem, "libssh2 cannot be initialized");
}

template <class Function>
void set_callback(LIBSSH2_SESSION* session, int kind, Function* function) {
#if LIBSSH2_VERSION_NUM >= 0x010b01
  libssh2_session_callback_set2(session, kind, reinterpret_cast<libssh2_cb_generic*>(function));
#else
  libssh2_session_callback_set(session, kind, reinterpret_cast<void*>(function));
#endif
}

}  // namespace

SshSession::SshSession(boost::asio::ip::tcp::socket socket) : wire_(std::make_shared<SshWire>(std::move(socket))) {
  initialize_library();
  session_ = libssh2_session_init_ex(nullptr, nullptr, nullptr, this);
  if (session_ == nullptr) throw Error(Errc::kSystem, "libssh2 cannot make a session: out of memory");
  libssh2_session_set_blocking(session_, 0);
  set_callback(session_, LIBSSH2_CALLBACK_RECV, &SshSession::receive);
  set_callback(session_, LIBSSH2_CALLBACK_SEND, &SshSession::send);
  set_callback(session_, LIBSSH2_CALLBACK_DISCONNECT, &SshSession::on_disconnect);
}

SshSession::~SshSession() {
  constexpr int kMostTries = 100;  // each takes it a step further, and none can wait: receive() fails from now on
  ending_ = true;
  wire_->close();
  for (int i = 0; i < kMostTries && libssh2_session_free(session_) == LIBSSH2_ERROR_EAGAIN; ++i) {
  }
}

/// libssh2 1.10 leaves out what it does not know by itself, but copies between overlapping places while it does so.
void SshSession::prefer(int kind, std::string_view names) {
  const char** known = nullptr;
  const int count = libssh2_session_supported_algs(session_, kind, &known);
  std::string usable;
  for (std::string_view rest = names; !rest.empty();) {
    const std::string_view name = rest.substr(0, rest.find(','));
    rest.remove_prefix(std::min(rest.size(), name.size() + 1));
    const bool is_known =
        std::any_of(known, known + std::max(count, 0), [&](const char* each) { return name == each; });
    if (is_known) usable += (usable.empty() ? "" : ",") + std::string(name);
  }
  if (count > 0) libssh2_free(session_, known);
  if (usable.empty() || libssh2_session_method_pref(session_, kind, usable.c_str()) != 0)
    throw SshProgramNeeded(fmt::format("libssh2 {} knows none of {}", libssh2_version(0), names));
}

std::string SshSession::last_error() const {
  char* message = nullptr;
  const int code = libssh2_session_last_error(session_, &message, nullptr, 0);
  return std::string(message == nullptr ? "" : message) + " (libssh2 error " + std::to_string(code) + ")";
}

ssize_t SshSession::receive(libssh2_socket_t, void* data, size_t size, int, void** self) {
  const auto& session = *static_cast<SshSession*>(*self);
  return session.ending_ ? 0 : session.wire_->take(data, size);
}

ssize_t SshSession::send(libssh2_socket_t, const void* data, size_t size, int, void** self) {
  return static_cast<SshSession*>(*self)->wire_->put(data, size);
}

void SshSession::on_disconnect(LIBSSH2_SESSION*, int, const char* message, int size, const char*, int, void** self) {
  auto& session = *static_cast<SshSession*>(*self);
  session.disconnected_ = true;
  if (message != nullptr && size > 0) session.farewell_.assign(message, static_cast<std::size_t>(size));
}

bool libssh2_has_rsa_sha2() {
  return libssh2_version(kRsaSha2Version) != nullptr;
}

}  // namespace runjob
