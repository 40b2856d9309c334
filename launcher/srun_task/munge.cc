#include "launcher/srun_task/munge.hpp"

#include <dlfcn.h>
#include <memory>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/library_function.hpp"

namespace runjob {
namespace {

// Source: munge.h, whose numbers are part of the library's ABI.
constexpr int kUidRestriction = 9;  // MUNGE_OPT_UID_RESTRICTION
constexpr int kSuccess = 0;         // EMUNGE_SUCCESS
constexpr int kSocketFailed = 6;    // EMUNGE_SOCKET

struct Free {
  void operator()(void* memory) const { ::free(memory); }
};

}  // namespace

Munge Munge::load(const std::string& library) {
  void* handle = ::dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr)
    throw Error(
        Errc::kUnavailable,
        fmt::format("the tasks of a SLURM step share their key with MUNGE, which is not installed here ({}); use "
                    "salloc or sbatch, and runjob without srun",
                    ::dlerror()));
  const auto find = [handle](const char* name, auto& function) { find_function(handle, name, function, "libmunge"); };
  Functions functions;
  find("munge_encode", functions.encode);
  find("munge_decode", functions.decode);
  find("munge_strerror", functions.strerror);
  find("munge_ctx_create", functions.create);
  find("munge_ctx_destroy", functions.destroy);
  find("munge_ctx_set", functions.set);
  return Munge(functions);
}

std::string Munge::seal(std::string_view text) const {
  const std::unique_ptr<MungeContext, void (*)(Context)> context(functions_.create(), functions_.destroy);
  int code = context ? functions_.set(context.get(), kUidRestriction, ::geteuid()) : 1;
  char* credential = nullptr;
  if (code == kSuccess)
    code = functions_.encode(&credential, context.get(), text.data(), static_cast<int>(text.size()));
  const std::unique_ptr<char, Free> owner(credential);
  if (code != kSuccess)
    throw Error(Errc::kUnavailable,
                fmt::format("MUNGE cannot seal: {}; does munged run on this host?", functions_.strerror(code)));
  return credential;
}

std::string Munge::open(const std::string& credential) const {
  void* text = nullptr;
  int length = 0;
  uid_t user = 0;
  gid_t group = 0;
  const int code = functions_.decode(credential.c_str(), nullptr, &text, &length, &user, &group);
  const std::unique_ptr<void, Free> owner(text);  // also there for some errors
  if (code == kSocketFailed)
    throw Error(Errc::kUnavailable, fmt::format("MUNGE cannot open a credential: {}; does munged run on this host?",
                                                functions_.strerror(code)));
  if (code != kSuccess)
    throw Error(Errc::kAuth, fmt::format("MUNGE refuses a credential: {}", functions_.strerror(code)));
  if (user != ::geteuid()) throw Error(Errc::kAuth, fmt::format("a credential of user {} is not this user's", user));
  std::string result(static_cast<const char*>(text), static_cast<std::size_t>(length));
  ::explicit_bzero(text, static_cast<std::size_t>(length));  // it may have the job's key
  return result;
}

}  // namespace runjob
