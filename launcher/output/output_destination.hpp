#pragma once

#include <memory>
#include <string_view>

#include <boost/asio/any_io_executor.hpp>

#include "launcher/output/output_sink.hpp"
#include "launcher/output/output_text.hpp"
#include "launcher/output/terminal_text.hpp"

namespace runjob {

/// One of this process's standard descriptors as the place where output goes, with the text that suits it.
/// Threads  the loop's one thread.
class OutputDestination {
 public:
  /// `descriptor` is lent. `rows`: whether a terminal may be drawn on; else it gets the text for a file.
  OutputDestination(boost::asio::any_io_executor executor, int descriptor, bool rows);

  OutputText& text() { return *text_; }
  /// Null unless it is drawn on.
  TerminalText* terminal() { return terminal_; }
  OutputSink& sink() { return sink_; }

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

/// Whether both descriptors lead to one and the same terminal, pipe or file, where their texts would mix.
bool same_file(int descriptor, int other);

}  // namespace runjob
