// The oracle: attention and its gradients in double precision, and the same mathematics in 16-bit arithmetic,
// whose error sets the tolerance. Shares no code with kernels/; the mask is its own.
#pragma once

#include <vector>

#include "attention/problem.h"
#include "attention/reference/inputs.h"

namespace flashback::reference {

// Packed (batch, row, head, channel), lse (batch, head, row), natural logarithm; where the question says
// `packed`, (row, head, channel) and (head, row).
// A row that sees no key has out 0, lse -infinity (with a sink: the sink) and gradients zero; so has a row of
// no sequence, but for its lse, which is 0.
template <typename Real>
struct Answer {
  std::vector<Real> out, lse, dq, dk, dv;
  std::vector<Real> dsink;  // of each head; empty without a sink
};

// The rows of a sequence among all rows of a side, batches one after another.
struct Rows {
  std::int64_t first, count;
};

struct Question {
  Shape shape;
  Mask mask;
  double scale = 1;
  // Of each sequence; empty: all seqlen rows of each batch.
  std::vector<Rows> q_rows = {}, k_rows = {};
  bool q_packed = false, k_packed = false;  // seqlen is the number of all rows, and not of each batch
};

// Any head dim; kv_heads divides heads; lengths may be 0. `threads` 0: one for each core; the answer does not
// depend on it. Memory beyond the answer: of the order of (seqlen_q + seqlen_k) * head_dim + 64 * seqlen_k
// for each thread.
Answer<double> exact(const Question& question, const Inputs& inputs, int threads = 0);

// As an eager 16-bit implementation computes: products accumulate in fp32, and the scores, P, out, dP, dS and
// the gradients are rounded to `dtype` where such an implementation stores them. Its backward pass takes
// delta = dout.out from `out`, packed like q and stored in `dtype`: the one that the pass under judgement is
// given, so that what its rounding costs is the same in both.
Answer<float> sixteen_bit(const Question& question, const Inputs& inputs, const std::vector<float>& out,
                          Dtype dtype, int threads = 0);

// An exact out as it is stored.
std::vector<float> stored(const std::vector<double>& out, Dtype dtype);

}  // namespace flashback::reference
