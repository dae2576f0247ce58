// What a run is given: a problem and the values of its tensors, generated or read from a file.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "attention/problem.h"
#include "attention/reference/inputs.h"
#include "program/problem_options.h"

namespace flashback::program {

struct RunInputs {
  Shape shape;
  Lengths lengths;
  reference::Inputs tensors;       // values of the dtype
  std::vector<float> out;          // of the file; empty when it has none
  std::vector<float> lse;          // of the file; empty when it has none
  std::vector<std::string> notes;  // what was done to the values, a sentence each
};

// Reads q, k, v, dout and, where the file has them, out, lse, dlse, sink, cu_seqlens_q, cu_seqlens_k,
// seqused_q, seqused_k. Extents in `given` must agree with the
// file's. Refuses with a Failure what has the wrong dtype or shape, and values that are not finite in
// `dtype`.
RunInputs read_inputs(const std::filesystem::path& path, const PartialShape& given, Dtype dtype);

}  // namespace flashback::program
