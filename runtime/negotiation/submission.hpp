#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "runtime/collectives/operation.hpp"

namespace runjob::runtime {

class DeviceWork;

/// The buffers of one tensor of a group.
struct GroupBuffers {
  const void* input = nullptr;
  void* output = nullptr;
  std::size_t output_bytes = 0;
};

/// One operation as its caller submits it. The buffers are lent until its Completion is done.
template <class Name, class Extents>
struct BasicSubmission {
  Name name;  ///< of a caller; of an unnamed operation, kUnnamed until the engine numbers it
  BasicSignature<Extents> signature;
  const void* input = nullptr;
  /// For allgather, alltoall and reducescatter: room for the result, which belongs to the Completion when it does not
  /// fit.
  void* output = nullptr;
  std::size_t output_bytes = 0;
  Device device = {};                     ///< the device of the buffers, when the signature's memory is not the host's
  std::vector<GroupBuffers> group = {};   ///< the buffers of a grouped operation, in place of these three
  Name key = {};                          ///< of an unnamed operation with a number: see UnnamedSubmissions
  std::shared_ptr<DeviceWork> work = {};  ///< set by the engine for buffers of a device
};
using Submission = BasicSubmission<std::string, Shape>;
/// An operation whose name and shapes are lent, as its buffers: of one tensor, it then needs no memory.
using SubmissionView = BasicSubmission<std::string_view, ShapeView>;

/// Copies what `view` lends.
inline Submission to_submission(const SubmissionView& view) {
  Submission made{std::string(view.name),
                  with_extents<Shape>(view.signature),
                  view.input,
                  view.output,
                  view.output_bytes,
                  view.device,
                  view.group,
                  std::string(view.key)};
  made.signature.group = view.signature.group;
  return made;
}

/// The name under which the negotiation announces it and the response cache knows it.
template <class Name, class Extents>
const Name& announced_name(const BasicSubmission<Name, Extents>& submission) {
  return submission.key.empty() ? submission.name : submission.key;
}

/// A view of `submission`, for as long as that lives.
inline SubmissionView lent(const Submission& submission) {
  SubmissionView view{submission.name,         with_extents<ShapeView>(submission.signature),
                      submission.input,        submission.output,
                      submission.output_bytes, submission.device,
                      submission.group,        submission.key};
  view.signature.group = submission.signature.group;
  return view;
}

}  // namespace runjob::runtime
