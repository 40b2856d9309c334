#include "launcher/output/start_status.hpp"

#include <utility>

#include <fmt/format.h>

namespace runjob {
namespace {

using namespace std::chrono_literals;

constexpr auto kPatience = 1s;  // a start that is quicker is not worth a line
constexpr auto kRefresh = 1s;

}  // namespace

StartStatus::StartStatus(boost::asio::any_io_executor executor, const Allocation& allocation, Show show)
    : show_(std::move(show)), line_(allocation), timer_(executor) {}

void StartStatus::start() {
  watch();
}

void StartStatus::update() {
  if (stopped_) return;
  if (shown_ && !line_.waiting()) return on_tick();
  if (!watching_ && line_.waiting()) watch();
}

void StartStatus::stop() {
  stopped_ = true;
  timer_.cancel();
  if (std::exchange(shown_, false)) show_("", "");
}

void StartStatus::watch() {
  watching_ = true;
  waiting_since_ = std::chrono::steady_clock::now();
  timer_.expires_after(kPatience);
  timer_.async_wait([this](boost::system::error_code error) {
    if (!error) on_tick();
  });
}

void StartStatus::on_tick() {
  if (stopped_) return;  // it had expired before it was cancelled
  const std::string what = line_.text();
  shown_ = !what.empty();
  watching_ = shown_;
  if (!shown_) {
    timer_.cancel();
    return show_("", "");
  }
  const auto waited =
      std::chrono::duration_cast<std::chrono::seconds>(std::chrono::steady_clock::now() - waiting_since_);
  show_(fmt::format("{} ({} s)", what, waited.count()), what);
  timer_.expires_after(kRefresh);
  timer_.async_wait([this](boost::system::error_code error) {
    if (!error) on_tick();
  });
}

}  // namespace runjob
