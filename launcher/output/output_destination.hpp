#pragma once

#include <memory>
#include <string_view>

#include <boost/asio/any_io_executor.hpp>

#include "launcher/output/output_sink.hpp"
#include "launcher/output/output_text.hpp"
#include "launcher/output/terminal_text.hpp"

namespace runjob {

/// How a terminal is used. A file or a pipe gets every byte in any case.
enum class TerminalUse {
  kRows,       ///< lines scroll, and rows below them are redrawn
  kLines,      ///< lines only, as on a terminal without cursor movement
  kUnchanged,  ///< one rank has it to itself, as the user asked
};

/// One of this process's standard descriptors as the place where output goes, with the text that suits it.
/// Threads  the loop's one thread.
class OutputDestination {
 public:
  /// `descriptor` is lent.
  OutputDestination(boost::asio::any_io_executor executor, int descriptor, TerminalUse use);

  OutputText& text() { return *text_; }
  /// Null unless it is drawn on.
  TerminalText* terminal() { return terminal_; }
  OutputSink& sink() { return sink_; }

  /// Writes a line of our own, with its newline, behind what the text has ready.
  void add_line(std::string_view line);
  /// Writes what the text has ready.
  void flush();
  /// Takes the rows from the terminal until the next flush().
  void hide_rows();

 private:
  int descriptor_;
  OutputSink sink_;
  std::unique_ptr<OutputText> text_;
  TerminalText* terminal_ = nullptr;
};

/// True when both descriptors lead to one and the same terminal, pipe or file, where their texts would mix.
bool same_file(int descriptor, int other);

}  // namespace runjob
