#pragma once

#include <string>
#include <utility>

#include "base/error.hpp"

namespace runjob {

/// The outcome of something that ends on another thread or in another process: a code and, when it failed, a
/// message. A value; copying it is safe between threads.
class [[nodiscard]] Status {
 public:
  Status() = default;
  Status(Errc code, std::string message) : code_(code), message_(std::move(message)) {}
  explicit Status(const Error& error) : Status(error.code(), error.what()) {}

  bool ok() const { return code_ == Errc::kOk; }
  Errc code() const { return code_; }
  const std::string& message() const { return message_; }

  bool operator==(const Status&) const = default;

  /// Throws Error when not ok().
  void throw_if_failed() const {
    if (!ok()) throw Error(code_, message_);
  }

 private:
  Errc code_ = Errc::kOk;
  std::string message_;
};

}  // namespace runjob
