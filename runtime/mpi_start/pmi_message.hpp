#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace runjob::runtime {

/// A message of PMI-1's line protocol: `cmd=get_result rc=0 msg=success value=...`.
/// Source  MPICH 4.0, src/pm/hydra/proxy/pmip_pmi_v1.c and src/pmi/simple/simple_pmi.c; SLURM 22.05,
///         src/plugins/mpi/pmi2/pmi1.c.
struct PmiMessage {
  std::string command;
  std::vector<std::pair<std::string, std::string>> values;  ///< in order, each name once

  bool operator==(const PmiMessage&) const = default;

  /// The field's value; empty when there is no such field.
  std::string value(std::string_view name) const;
};

/// The message's text without an end of line. Neither the command nor a value may contain blanks.
std::string to_text(const PmiMessage& message);

/// Parses a line, with or without its end. A word without '=' belongs to the value before it, because launchers put
/// text for people into `msg`.
/// Errors  Error(kProtocol) showing the line.
PmiMessage parse_pmi_message(std::string_view line);

}  // namespace runjob::runtime
