#pragma once

#include <string>
#include <string_view>
#include <sys/types.h>

namespace runjob {

/// Seals and opens text that only processes of one user, on hosts with one MUNGE key, can make and read. Every SLURM
/// cluster with auth/munge is such a group of hosts. The library is opened on demand.
/// Threads  any number at the same time.
/// Source   MUNGE, munge(3), munge_ctx(3).
class Munge {
 public:
  /// `library`: tests name another one. Errors  Error(kUnavailable) with the remedy if it is not installed.
  static Munge load(const std::string& library = "libmunge.so.2");

  /// A credential: printable, without spaces, valid for some minutes, once on each host. Blocks for the local munged.
  /// Errors  Error(kUnavailable) with munged's reason.
  std::string seal(std::string_view text) const;

  /// The text that a process of this user has sealed. Errors  Error(kAuth) if another user sealed it, or if it was
  /// altered, is too old, or was opened on this host before; Error(kUnavailable) if munged does not answer.
  std::string open(const std::string& credential) const;

 private:
  using Context = struct MungeContext*;
  struct Functions {
    int (*encode)(char** credential, Context, const void* text, int length) = nullptr;
    int (*decode)(const char* credential, Context, void** text, int* length, uid_t* user, gid_t* group) = nullptr;
    const char* (*strerror)(int code) = nullptr;
    Context (*create)() = nullptr;
    void (*destroy)(Context) = nullptr;
    int (*set)(Context, int option, ...) = nullptr;
  };

  explicit Munge(const Functions& functions) : functions_(functions) {}

  Functions functions_;  // of a library that is never closed
};

}  // namespace runjob
