#include "launcher/job/end_signals.hpp"

#include <signal.h>
#include <utility>

#include "launcher/processes/ignored_signal.hpp"

namespace runjob {

EndSignals::EndSignals(boost::asio::any_io_executor executor, OnSignal on_signal)
    : signals_(executor, SIGINT, SIGTERM), on_signal_(std::move(on_signal)) {
  if (!is_ignored(SIGHUP)) signals_.add(SIGHUP);
}

void EndSignals::start() {
  signals_.async_wait([this](boost::system::error_code error, int number) {
    if (error) return;
    start();
    on_signal_(number, number == SIGINT && ++interrupts_ > 1);
  });
}

}  // namespace runjob
