#include "launcher/srun_task/pmix_names.hpp"

#include <chrono>

#include "base/error.hpp"
#include "base/log.hpp"

namespace runjob {
namespace {

using namespace std::chrono_literals;

constexpr auto kLookUpWait = 20ms;  // for an answer that comes at once

/// Nullopt, with the reason in the log, when it cannot be used.
std::optional<PmixLibrary> open_library() try { return open_pmix_library(); } catch (const Error& error) {
  log::info("the step has PMIx, which this host has not: {}", error.what());
  return std::nullopt;
}

}  // namespace

std::unique_ptr<PmixNames> PmixNames::open(const SlurmTask& task) {
  if (task.pmix_namespace.empty()) return nullptr;
  const std::optional<PmixLibrary> library = open_library();
  if (!library) return nullptr;
  std::unique_ptr<PmixNames> names(new PmixNames(*library));
  pmix::Proc& self = names->self_;
  const pmix::Status status = library->init(&self, nullptr, 0);
  if (status == pmix::kSuccess && self.name_space == task.pmix_namespace &&
      self.rank == static_cast<std::uint32_t>(task.rank))
    return names;
  log::info("PMIx does not know this task: {}", library->error_text(status));
  if (status != pmix::kSuccess) self.name_space[0] = '\0';  // there is nothing to finalize
  return nullptr;
}

PmixNames::~PmixNames() {
  if (self_.name_space[0] != '\0') static_cast<void>(library_.finalize(nullptr, 0));
}

bool PmixNames::publish(std::string_view name, std::string_view value) {
  return put_pmix_value(library_, std::string(name), std::string(value)) == pmix::kSuccess &&
         library_.commit() == pmix::kSuccess;
}

std::optional<std::string> PmixNames::look_up(std::string_view name) {
  auto asked = asked_.find(name);
  if (asked == asked_.end())
    asked = asked_.emplace(std::string(name), PmixQuestion(library_, self_, 0, std::string(name))).first;
  const std::optional<PmixQuestion::Answer> answer = asked->second.wait(std::chrono::steady_clock::now() + kLookUpWait);
  if (!answer) return std::nullopt;
  if (answer->status == pmix::kSuccess) return answer->bytes;
  asked_.erase(asked);  // the next call asks again
  return std::nullopt;
}

}  // namespace runjob
