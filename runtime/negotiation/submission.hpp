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
  Name name;
  BasicSignature<Extents> signature;
  const void* input = nullptr;
  /// For allgather, alltoall and reducescatter: room for the result, which belongs to the Completion when it does not
  /// fit.
  void* output = nullptr;
  std::size_t output_bytes = 0;
  Device device = {};                     ///< the device of the buffers, when the signature's memory is not the host's
  std::vector<GroupBuffers> group = {};   ///< the buffers of a grouped operation, in place of these three
  std::shared_ptr<DeviceWork> work = {};  ///< set by the engine for buffers of a device
};
using Submission = BasicSubmission<std::string, Shape>;
/// An operation on one tensor whose name and shapes are lent, as its buffers: a cached operation then allocates
/// nothing.
using SubmissionView = BasicSubmission<std::string_view, ShapeView>;

/// `old` lends its memory: where that is enough for the name and the shapes, nothing is allocated.
inline Submission to_submission(const SubmissionView& view, Submission&& old = {}) {
  old.name = view.name;
  old.signature.shape.assign(view.signature.shape.begin(), view.signature.shape.end());
  old.signature.splits.assign(view.signature.splits.begin(), view.signature.splits.end());
  SignatureView terms = view.signature;
  terms.shape = terms.splits = {};
  Submission made{std::move(old.name), with_extents<Shape>(terms), view.input,
                  view.output,         view.output_bytes,          view.device};
  made.signature.shape = std::move(old.signature.shape);
  made.signature.splits = std::move(old.signature.splits);
  return made;
}

}  // namespace runjob::runtime
