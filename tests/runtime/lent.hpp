#pragma once

#include "runtime/engine/submission.hpp"

/// A view of `submission`, for as long as that lives.
inline runjob::runtime::SubmissionView lent(const runjob::runtime::Submission& submission) {
  const runjob::runtime::Signature& own = submission.signature;
  return {submission.name,
          {.kind = own.kind,
           .dtype = own.dtype,
           .op = own.op,
           .root = own.root,
           .process_set = own.process_set,
           .prescale = own.prescale,
           .postscale = own.postscale,
           .shape = own.shape,
           .splits = own.splits,
           .wire = own.wire},
          submission.input,
          submission.output,
          submission.output_bytes};
}
