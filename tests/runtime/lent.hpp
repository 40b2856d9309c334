#pragma once

#include "runtime/negotiation/submission.hpp"

/// A view of `submission`, for as long as that lives.
inline runjob::runtime::SubmissionView lent(const runjob::runtime::Submission& submission) {
  return {submission.name, runjob::runtime::with_extents<runjob::runtime::ShapeView>(submission.signature),
          submission.input, submission.output, submission.output_bytes};
}
