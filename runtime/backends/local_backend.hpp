#pragma once

#include "runtime/collectives/backend.hpp"

namespace runjob::runtime {

/// Rounds of one rank, which receives only its own messages.
class LocalRounds : public Rounds {
 public:
  std::size_t most_bytes() const override { return std::size_t{1} << 16; }
  void give(std::uint32_t tag, std::span<const std::byte> bytes) override;
  bool collect(Deadline, const IsBusy&) override { return true; }
  bool has_given(int) const override { return true; }
  std::uint32_t tag(int) const override { return tag_; }
  std::span<const std::byte> message(int) const override { return message_; }
  bool is_awaited() const override { return false; }
  void wait(Deadline) override {}  // there is never another rank to wait for
  void nudge() override {}
  void leave() override {}

 private:
  std::uint32_t tag_ = 0;
  std::vector<std::byte> message_;
};

/// The backend of a job with one rank. It never waits.
class LocalBackend : public Backend {
 public:
  std::string address() const override { return {}; }
  Status connect(const std::vector<std::string>& addresses) override;
  Status run(const Call& call) override;
  void abort(const Status& why) override;
  Rounds& rounds() override { return rounds_; }

 private:
  LocalRounds rounds_;
};

}  // namespace runjob::runtime
