#include "launcher/output/output_destination.hpp"

#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "launcher/output/plain_text.hpp"

namespace runjob {
namespace {

/// How many lines the terminal has; 0 while we are in its background, where the screen is somebody else's.
int usable_height(int descriptor) {
  constexpr int kUsual = 24;
  const pid_t foreground = ::tcgetpgrp(descriptor);
  if (foreground > 0 && foreground != ::getpgrp()) return 0;
  winsize size{};
  const bool known = ::ioctl(descriptor, TIOCGWINSZ, &size) == 0 && size.ws_row > 0;
  return known ? size.ws_row : kUsual;
}

}  // namespace

OutputDestination::OutputDestination(boost::asio::any_io_executor executor, int descriptor, TerminalUse use)
    : descriptor_(descriptor), sink_(executor, descriptor) {
  const bool is_terminal = ::isatty(descriptor) == 1;
  if (is_terminal && use == TerminalUse::kRows) {
    auto text = std::make_unique<TerminalText>();
    terminal_ = text.get();
    text_ = std::move(text);
  } else {
    const bool cleaned = is_terminal && use == TerminalUse::kLines;
    text_ = std::make_unique<PlainText>(cleaned ? PlainText::Bytes::kForTerminal : PlainText::Bytes::kAll);
  }
}

void OutputDestination::add_line(std::string_view line) {
  if (terminal_ != nullptr) {
    terminal_->add_line(line);
  } else {
    text_->write_to(sink_.buffer());
    sink_.buffer() += line;
  }
  flush();
}

void OutputDestination::flush() {
  if (terminal_ != nullptr) terminal_->set_height(usable_height(descriptor_));
  text_->write_to(sink_.buffer());
  sink_.flush();
}

void OutputDestination::hide_rows() {
  if (terminal_ == nullptr) return;
  terminal_->set_height(0);
  text_->write_to(sink_.buffer());
  sink_.flush();
}

bool same_file(int descriptor, int other) {
  struct stat first {};
  struct stat second {};
  if (::fstat(descriptor, &first) != 0 || ::fstat(other, &second) != 0) return false;
  return first.st_dev == second.st_dev && first.st_ino == second.st_ino;
}

}  // namespace runjob
